"""Invalid cases: OpenVINO and irload reject the same ones, irload with an IRError, except for listed reasons."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

from irload.ops.registry import registered
from tests.harness.case import GENERATORS
from tests.harness.ir import ir_of
from tests.harness.mutants import MUTATIONS, mutant
from tests.harness.strictness import STRICTNESS
from tests.harness.tiers import tiered
from tests.invalid_sweep import judge
from tests.ops.families import load_families

load_families()
MUTANTS = tiered(160, 500)


def test_irload_and_the_runtime_reject_the_same() -> None:
    """In a separate process, because it forks. `python -m tests.invalid_sweep N SEED` for any number."""
    words = [sys.executable, "-m", "tests.invalid_sweep", str(MUTANTS), "20261121"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    table = {line: int(n) for n, line in re.findall(r"^ *(\d+)  (.*)$", done.stdout, re.M)}
    assert sum(table.values()) == MUTANTS
    assert table["both reject"] > MUTANTS / 4 < table["both accept"], "too few or too many mutants are rejected"


@pytest.mark.parametrize("mutation", sorted(set(MUTATIONS), key=lambda m: m.__name__), ids=lambda m: m.__name__)
def test_mutations_change_something(mutation) -> None:
    rng = np.random.default_rng(7)
    changed = 0
    for row in sorted(GENERATORS):
        case = GENERATORS[row][0](rng)
        spoilt = mutation(rng, case)
        changed += spoilt is not None and ir_of(spoilt) != ir_of(case)
    assert changed > 20


def test_a_mutant_is_deterministic() -> None:
    assert [str(mutant(3, k)) for k in range(50)] == [str(mutant(3, k)) for k in range(50)]
    assert len({str(mutant(3, k)) for k in range(50)}) == 50


def test_strictness_names_operations_and_reasons() -> None:
    types = {cls.type for cls in registered()}
    assert [t for entry in STRICTNESS for t in entry.types if t not in types] == []
    assert all(len(entry.why) > 20 and entry.side in ("accepted", "rejected") for entry in STRICTNESS)
    assert all(entry.types or entry.words for entry in STRICTNESS)


@pytest.mark.parametrize(
    ("mine", "other", "line", "wrong"),
    [
        (("accepted", ""), ("accepted", ""), "both accept", False),
        (("rejected", "x"), ("rejected", "y"), "both reject", False),
        (("accepted", ""), ("rejected", "y"), "irload accepts, OpenVINO rejects: WITHOUT A REASON", True),
        (("rejected", "x"), ("accepted", ""), "irload rejects, OpenVINO accepts: WITHOUT A REASON", True),
        (
            ("rejected", "TypeMismatch: listed"),
            ("accepted", ""),
            "irload rejects, OpenVINO accepts: with a listed",
            False,
        ),
        (("failed", "KeyError"), ("rejected", "y"), "another exception", True),
        (("rejected", "cannot be inferred from"), ("rejected", "y"), "another exception", True),
        (("accepted", ""), ("crashed", "SIGSEGV"), "OpenVINO crashes, irload accepts", False),
    ],
)
def test_verdicts(mine, other, line, wrong) -> None:
    case = GENERATORS["Elu", "opset1"][0](np.random.default_rng(0))
    errors, words = judge(case, mine, other)
    assert errors.startswith(line)
    assert bool(words) == wrong
