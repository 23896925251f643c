"""A new process for a mutant of code that runs at import: `python -m tests.mutants.fresh JOB ROOT MODULE`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.mutants.job import Job, play_fresh
from tests.mutants.mutant import Mutant

if __name__ == "__main__":
    file, root, module = sys.argv[1:]
    entry = json.loads(Path(file).read_text(encoding="utf-8"))
    sys.exit(play_fresh(Job(**{**entry, "mutant": Mutant(**entry["mutant"])}), Path(root), module))
