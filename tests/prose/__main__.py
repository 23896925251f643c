"""`python -m tests.prose` writes the table of terms into CONTRIBUTING.md and shortens the list of old phrases.

With paths it prints the forbidden phrases of these files and folders instead.
"""

from __future__ import annotations

import sys

from tests.prose.old_places import LIST, counted, grown, listed, write
from tests.prose.terms import PAGE, hits, load, page
from tests.prose.texts import ROOT, files, texts


def main(paths: list[str]) -> int:
    return show(paths) if paths else renew()


def show(paths: list[str]) -> int:
    """One line per forbidden phrase."""
    terms, number = load(), 0
    for path in files():
        if any(path == p or path.startswith(p.rstrip("/") + "/") for p in paths):
            for hit in hits(texts(path, (ROOT / path).read_text(encoding="utf-8")), terms):
                print(f"{path}:{hit.line}: {hit.phrase!r}: say {hit.term.say}")
                number += 1
    return int(number > 0)


def renew() -> int:
    """Write the table and the list, unless the list would grow."""
    PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), load()), encoding="utf-8")
    new = counted()
    if LIST.exists() and (more := grown(listed(LIST.read_text(encoding="utf-8")), new)):
        print("more forbidden phrases than listed; rewrite them (`python -m tests.prose FILE` shows them):")
        print(*(f"  {path}: {count}" for path, count in sorted(more.items())), sep="\n")
        return 1
    write(new)
    print(f"{sum(new.values())} phrases in {len(new)} files")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
