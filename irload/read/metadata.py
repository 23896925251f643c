"""Metadata outside the graph: rt_info, the legacy meta_data and quantization_parameters, and pre-process."""

from __future__ import annotations

from typing import Any

from irload.errors import ReadError
from irload.read.elements import Element, Elements
from irload.read.raw import RawMean, RawPreprocess

OLD = ("meta_data", "quantization_parameters")


def tree(element: Element) -> dict[str, Any]:
    """Return the tree of rt_info and meta_data.

    Entries are `<key value="…"/>`, nested elements, or `<info name="odd key" value="…"/>`.
    """
    root: dict[str, Any] = {}
    pending = [(element, root)]
    while pending:
        parent, entries = pending.pop()
        for child in parent:
            key, value = child.get("name", child.tag), child.get("value")
            if len(child) and value is None:
                inner: dict[str, Any] = {}
                entries[key] = inner
                pending.append((child, inner))
            else:
                entries[key] = value if value is not None else (child.text or "").strip() or {}
    return root


def check_old(element: Element, elements: Elements) -> None:
    """Report entries of meta_data that OpenVINO rejects: neither a value nor cli_parameters."""
    for child in element:
        if element.tag == "meta_data" and child.get("value") is None and child.tag != "cli_parameters":
            elements.report(ReadError(f"<{child.tag}> of meta_data has no value", elements.where(child)))


def preprocess(element: Element, elements: Elements) -> RawPreprocess:
    """Return the means of a pre-process element by channel id. Faults are reported and their channels skipped."""
    means: dict[int, RawMean] = {}
    for channel in element.iter("channel"):
        identity = elements.natural(channel, "id")
        for mean in channel.iter("mean"):
            raw = _mean(mean, elements)
            if raw is not None and identity is not None:
                means[identity] = raw
    ordered = [means[k] for k in sorted(means)]
    return RawPreprocess(element.get("reference-layer-name", ""), ordered, element.sourceline)


def _mean(element: Element, elements: Elements) -> RawMean | None:
    text = element.get("value")
    if text is None:
        offset, size = elements.natural(element, "offset"), elements.natural(element, "size")
        return None if offset is None or size is None else (offset, size)
    try:
        return float(text)
    except ValueError:
        elements.report(ReadError(f"value='{text[:40]}' of <mean> is not a number", elements.where(element)))
        return None
