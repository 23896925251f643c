"""`python -m tests.generated` regenerates every file derived from other files. `make generated` runs it.

With names (`python -m tests.generated rules imports`) only these.
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
    """The files that a command writes, and the test that fails if they are out of date."""

    files: tuple[str, ...]
    command: tuple[str, ...]
    test: str


TABLE = {  # in this order, because the pages read the index and the sampled oracles
    "index": Generated(("irload/ops/index.py",), ("-m", "tests.index"), "tests/test_index.py"),
    "oracles": Generated(("tests/data/oracles.csv",), ("-m", "tests.oracles"), "tests/test_operations_page.py"),
    "opsets": Generated(("tests/data/opsets.csv",), ("-m", "tests.opset_tables"), "tests/test_registry.py"),
    "agreed": Generated(("tests/data/agreed.csv",), ("-m", "tests.harness.recorded"), "tests/ops/test_conformance.py"),
    "operations": Generated(("docs/operations.md",), ("docs/make_operations.py",), "tests/test_operations_page.py"),
    "rules": Generated(("docs/rules.md",), ("docs/make_rules.py",), "tests/checks/test_files.py"),
    "findings": Generated(
        ("tests/checks/findings.txt",), ("-m", "tests.checks.findings"), "tests/checks/test_rules.py"
    ),
    "schema": Generated(("schemas/ir.rng",), ("-m", "schemas.make"), "tests/test_schema.py"),
    "imports": Generated(("docs/imports.md",), ("docs/make_imports.py",), "tests/test_imports.py"),
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
    "generate": Generated(("docs/generate.svg",), ("docs/make_text_picture.py",), ""),
}
"""Excluded: models/digits, whose training is repeated by a test, and measurements (benchmarks/RESULTS.md)."""


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
