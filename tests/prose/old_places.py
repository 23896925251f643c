"""Files that still contain forbidden phrases, with their number. The list may only shrink."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from tests.prose.terms import hits, load
from tests.prose.texts import ROOT, files, texts

LIST = Path(__file__).with_name("old_places.txt")


def listed(text: str) -> dict[str, int]:
    """The counts of the list. Of a file listed twice, as in the conflict of a merge, the lower count."""
    counts: dict[str, int] = {}
    for number, path in re.findall(r"^ *(\d+) (\S+)$", text, re.MULTILINE):
        counts[path] = min(int(number), counts.get(path, int(number)))
    return counts


def counted() -> dict[str, int]:
    """The counts of the tree."""
    terms = load()
    counts = {path: len(hits(texts(path, (ROOT / path).read_text(encoding="utf-8")), terms)) for path in files()}
    return {path: count for path, count in counts.items() if count}


def grown(old: Mapping[str, int], new: Mapping[str, int]) -> dict[str, int]:
    """The files with more phrases than listed.

    New paths together may have as many phrases as the listed paths that no longer exist: files are renamed.
    """
    more = {path: count for path, count in new.items() if count > old.get(path, 0)}
    renamed = {path for path in more if path not in old}
    released = sum(count for path, count in old.items() if not (ROOT / path).exists())
    if sum(more[path] for path in renamed) <= released:
        more = {path: count for path, count in more.items() if path not in renamed}
    return more


def write(counts: Mapping[str, int]) -> None:
    lines = [f"{count:3} {path}" for path, count in sorted(counts.items())]
    LIST.write_text("\n".join(["# Written by `python -m tests.prose`; only shrinks.", *lines, ""]), encoding="utf-8")
