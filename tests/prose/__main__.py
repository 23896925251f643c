"""`python -m tests.prose` writes the table of terms into CONTRIBUTING.md.

With paths it prints the forbidden phrases of these files and folders instead.
"""

from __future__ import annotations

import sys

from tests.prose.terms import PAGE, load, page, reported
from tests.prose.texts import files


def main(paths: list[str]) -> int:
    if not paths:
        PAGE.write_text(page(PAGE.read_text(encoding="utf-8"), load()), encoding="utf-8")
        return 0
    chosen = (f for f in files() if any(f == p or f.startswith(p.rstrip("/") + "/") for p in paths))
    lines = reported(chosen, load())
    print(*lines, sep="\n", end="\n" if lines else "")
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
