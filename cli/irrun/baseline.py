"""`irrun bench --baseline`: compares with an earlier document of `irrun bench --json`."""

from __future__ import annotations

import json
from pathlib import Path

import click

from irrun.document import Document
from irrun.render import safe, stderr, stdout

SETTINGS = ("inputs", "requests", "threads")
"""Members of the document that must be equal for a fair comparison."""
LARGEST = 1 << 24
"""Upper bound of the size of a baseline in bytes."""


def read_baseline(path: Path) -> Document:
    """Read an earlier document. Raises ReadError for an unreadable file, UsageError for any other document."""
    from irload.safety.files import read_limited

    text = read_limited(path, "the baseline", LARGEST)
    try:
        document = json.loads(text)
        (median,) = (side["latency"]["p50"] for side in document["sides"] if side["name"] == "irload")
        low, high = _side(document)["interval"]
        if not 0 < low <= median <= high:
            raise ValueError
    except (ValueError, TypeError, KeyError, RecursionError):
        raise click.UsageError(f"{path} is not a document of irrun bench --json, as --baseline requires") from None
    return document


def compared(document: Document, before: Document, path: Path) -> Document:
    """Return the ratio of the medians of irload, its interval, and the settings that differ.

    A `ratio` above 1 means that this run is slower. The interval combines the ends of both medians' intervals; the
    change is significant if the interval does not contain 1.
    """
    now, then = _side(document), _side(before)
    ratio = now["latency"]["p50"] / then["latency"]["p50"]
    low, high = now["interval"][0] / then["interval"][1], now["interval"][1] / then["interval"][0]
    differing = [name for name in SETTINGS if document[name] != before.get(name)]
    differing += ["precision"] if now["precision"] != then.get("precision") else []
    return {"file": str(path), "ratio": ratio, "interval": [low, high], "differing": differing}


def render_baseline(baseline: Document) -> None:
    """Print the change since the baseline."""
    ratio, (low, high) = baseline["ratio"], baseline["interval"]
    change = f"{abs(ratio - 1):.1%} {'slower' if ratio > 1 else 'faster'}"
    verdict = "no significant change" if low <= 1 <= high else change
    bounds = f"{ratio:.3f} × the median, 95 % interval {low:.3f} … {high:.3f}"
    stdout().print(f"\nagainst {safe(baseline['file'])}: {verdict} ({bounds})", soft_wrap=True)
    if baseline["differing"]:
        names = ", ".join(baseline["differing"])
        stderr().print(f"irrun: [bold yellow]warning:[/] the baseline has other {names}; times are not comparable")


def _side(document: Document) -> Document:
    return next(side for side in document["sides"] if side["name"] == "irload")
