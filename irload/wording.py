"""Words of messages: sizes, numbers of items, suggestions for misspelled names, and names from untrusted files."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["counted", "near_names", "printable", "size_text", "suggestion"]


def size_text(count: int) -> str:
    """Format a number of bytes: `24.5 KB`."""
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000:
            return f"{count} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def counted(count: int, noun: str) -> str:
    """Format a number of items: `1 layer`, `2,000 layers`."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def near_names(name: str, known: Iterable[str], most: int = 1, cutoff: float = 0.6) -> list[str]:
    """Return the known names that are most similar to a misspelled one.

    `cutoff`: the least similarity, from 0 to 1; `difflib` defines it.
    """
    from difflib import get_close_matches  # lazy import: only messages need it

    return get_close_matches(name, list(known), most, cutoff)


def suggestion(near: Iterable[str]) -> str:
    """Return the end of a message about an unknown name, such as `; did you mean 'conv1'?`. May be empty."""
    names = " or ".join(f"'{name}'" for name in near)
    return f"; did you mean {names}?" if names else ""


def printable(text: str) -> str:
    """Escape control characters, line ends and marks that change the writing direction.

    Names in files are untrusted: unescaped, they could forge lines of a log or control a terminal.
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
