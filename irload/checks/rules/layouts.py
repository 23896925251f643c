"""IR412: the axis layouts of tensors in rt_info."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from irload.checks.rule import Hit, graph_rule
from irload.checks.subject import Scope
from irload.read.raw import RawLayer

_NAME = re.compile(r"[A-Za-z0-9_]+")


@graph_rule("IR412", "error", "layout that its tensor cannot have")
def layout(scope: Scope) -> Iterator[Hit]:
    """The `layout` of an rt_info names more or fewer axes than the tensor has, names an axis twice, or is malformed.

    OpenVINO refuses malformed text, but compares the layout with the shape only when preprocessing is added.

    Example: `layout="[N,C,H,W]"` on a Parameter of shape 1,10.
    """
    for layer, node in scope.pairs():
        outputs = node.inputs if layer.type == "Result" else node.outputs
        for k, attributes in enumerate((layer.rt_info, *(p.rt_info for p in layer.outputs))):
            for text in _layouts(attributes):
                output = outputs[max(k - 1, 0)] if max(k - 1, 0) < len(outputs) else None
                rank = None if output is None else scope.type(output).rank
                fault = _fault(text, rank)
                if fault:
                    yield Hit(layer, f"has the layout '{text[:80]}', {fault}", line=_line(layer, k))


def _layouts(attributes: list[dict[str, Any]]) -> list[str]:
    return [str(a["layout"]) for a in attributes if a.get("name") == "layout" and isinstance(a.get("layout"), str)]


def _line(layer: RawLayer, position: int) -> int | None:
    return layer.line if position == 0 else layer.outputs[position - 1].line


def _fault(text: str, rank: int | None) -> str:
    """The reason why a layout is malformed or does not fit a tensor of this rank; empty if it may be valid."""
    text = text.strip()
    if text == "**SCALAR**":
        return f"and rank {rank}" if rank else ""
    axes = _axes(text)
    named = [a for a in axes if a not in ("?", "...")]
    if not axes or any(not _NAME.fullmatch(a) for a in named) or axes.count("...") > 1:
        return "which is not a layout; one is written as [N,C,...] or NCHW"
    if len(set(map(str.lower, named))) < len(named):
        return "which names an axis twice"
    count, open_ended = len([a for a in axes if a != "..."]), "..." in axes
    if rank is not None and (rank < count if open_ended else rank != count):
        return f"which has {'at least ' if open_ended else ''}{count} axes; the tensor has {rank}"
    return ""


def _axes(text: str) -> list[str]:
    """The axes of `[N,C,...]` or of `NC...`."""
    if text.startswith("[") and text.endswith("]"):
        return [axis.strip() for axis in text[1:-1].split(",")]
    return re.findall(r"\.\.\.|.", text, re.DOTALL)
