"""`python -m tests.generated` writes anew every file that is made from other files. `make generated` runs it.

With names (`python -m tests.generated rules counted`) only those.
"""

from __future__ import annotations

import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Generated:
    """What a command writes, and the test that fails where it is not current."""

    files: tuple[str, ...]
    command: tuple[str, ...]
    test: str


TABLE = {  # in this order: the pages read what the index and the sampled oracles say
    "index": Generated(("irload/ops/index.py",), ("-m", "tests.index"), "tests/test_index.py"),
    "oracles": Generated(("tests/data/oracles.csv",), ("-m", "tests.oracles"), "tests/test_operations_page.py"),
    "operations": Generated(("docs/operations.md",), ("docs/make_operations.py",), "tests/test_operations_page.py"),
    "rules": Generated(("docs/rules.md",), ("docs/make_rules.py",), "tests/checks/test_files.py"),
    "schema": Generated(("schemas/ir.rng",), ("-m", "schemas.make"), "tests/test_schema.py"),
    "layers": Generated(("docs/architecture.md",), ("-m", "tests.layers"), "tests/test_imports.py"),
    "counted": Generated(("tests/plan/counted.json",), ("-m", "tests.plan.counted"), "tests/plan/test_counted.py"),
    "seeds": Generated(
        ("models/pad_openvino/model.xml", "models/pad_ngraph/model.xml", "models/conv_openvino/model.xml"),
        ("models/make_seeds.py",),
        "tests/test_models.py",
    ),
    "small": Generated(
        ("models/dynamic/model.xml", "models/state/model.xml", "models/loop/model.xml"),
        ("models/make_small.py",),
        "tests/test_models.py",
    ),
    "picture": Generated(("docs/terminal.svg",), ("docs/make_picture.py",), ""),
}
"""Not here: models/digits, whose training is repeated by a test, and what is measured (benchmarks/RESULTS.md)."""


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in TABLE]:
        print(f"no such file: {', '.join(unknown)}; there are {', '.join(TABLE)}", file=sys.stderr)
        return 2
    for name in names or TABLE:
        start = time.perf_counter()
        done = subprocess.run([sys.executable, *TABLE[name].command], cwd=ROOT, check=False)
        print(f"{name}: {', '.join(TABLE[name].files)} ({time.perf_counter() - start:.0f} s)")
        if done.returncode:
            return done.returncode
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
