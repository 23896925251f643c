"""Compares rejections: `python -m tests.invalid_sweep [N] [SEED] [ROW…] [--every]`, over mutants of the valid cases.

Each mutant is read by irload and by OpenVINO's runtime, both in child processes. A case rejected by OpenVINO must be
rejected by irload with an IRError, and one accepted by OpenVINO must be accepted, unless tests/harness/strictness.py
lists a reason. A case accepted by irload must run to results or to an IRError. Prints a table, and every mutant that
violates this (`--every`: also mutants with a listed reason).
"""

from __future__ import annotations

import sys
from collections import Counter

import irload
from tests.harness import runtime
from tests.harness.case import GENERATORS, Case, text
from tests.harness.children import Died, in_children, preload
from tests.harness.ir import ir_of
from tests.harness.mutants import mutant
from tests.harness.strictness import reason
from tests.ops.families import load_families

MEMORY = 4 << 30
ITERATIONS = 1000
Verdict = tuple[str, str]
"""("accepted" | "rejected" | "failed" | "crashed", message)."""


def ours(case: Case) -> Verdict:
    """The verdict of irload: whether it reads and compiles the case, and whether an accepted case runs."""
    try:
        model = irload.read_model(*ir_of(case), limits=irload.Limits(iterations=ITERATIONS))
        compiled = irload.compile_model(model, threads=1, optimize=False)
    except irload.IRError as error:
        return "rejected", f"{type(error).__name__}: {error}"
    except Exception as error:
        return "failed", f"reading: {type(error).__name__}: {error}"
    try:
        compiled([i.value for i in case.inputs if not i.constant])
    except irload.IRError as error:
        return "accepted", f"{type(error).__name__}: {error}"
    except Exception as error:
        return "failed", f"running: {type(error).__name__}: {error}"
    return "accepted", ""


def theirs(case: Case) -> Verdict:
    """The verdict of OpenVINO on reading."""
    try:
        runtime.read(case)
    except runtime.Rejected as error:
        return "rejected", str(error)
    return "accepted", ""


def judge(case: Case, mine: Verdict, other: Verdict) -> tuple[str, str]:
    """The line of the table that a mutant belongs to, and its violation, if any."""
    if (
        mine[0] in ("failed", "crashed") or "cannot be inferred from" in mine[1]
    ):  # caught only by the handler of unexpected exceptions
        return "another exception than IRError, or a crash", mine[1]
    if other[0] == "crashed":
        return f"OpenVINO crashes, irload {'accepts' if mine[0] == 'accepted' else 'rejects'}", ""
    if case.version in ("onednn", "ngraph"):
        return "no runtime reads the operation", ""
    if mine[0] == other[0]:
        return f"both {'accept' if mine[0] == 'accepted' else 'reject'}", ""
    words = mine[1] if mine[0] == "rejected" else other[1]
    errors = reason(case, mine[0], words)
    line = "irload rejects, OpenVINO accepts" if mine[0] == "rejected" else "irload accepts, OpenVINO rejects"
    return f"{line}: {'with a listed reason' if errors else 'WITHOUT A REASON'}", "" if errors else words


def main(count: int, seed: int, wanted: list[str], *, every: bool = False) -> int:
    """Sweep `count` mutants and print the table. Returns the number of violations."""
    load_families()
    for row in [r for r in GENERATORS if wanted and not any(w in "-".join(r) for w in wanted)]:
        del GENERATORS[row]
    preload()
    mine = in_children(lambda k: ours(mutant(seed, k)), count, memory=MEMORY)
    other = in_children(lambda k: theirs(mutant(seed, k)), count)
    table: Counter[str] = Counter()
    broken = 0
    for k, (a, b) in enumerate(zip(list(mine), list(other), strict=True)):
        case = mutant(seed, k)
        a, b = (("crashed", str(v)) if isinstance(v, Died) else v for v in (a, b))
        line, words = judge(case, a, b)
        table[line] += 1
        broken += bool(words)
        if words or (every and a[0] != b[0]):
            print(f"{k}: {line}\n   {shown(case)}\n   irload {a[0]}: {a[1][:300]}\n   runtime {b[0]}: {brief(b[1])}")
    print(f"\n{count} mutants, seed {seed}")
    for line, n in sorted(table.items()):
        print(f"{n:8}  {line}")
    return broken


def shown(case: Case) -> str:
    """The case as text, with the values of its small inputs."""
    inputs = ", ".join(
        f"{'const ' if i.constant else ''}{i.element}{list(i.value.shape)}"
        + (f"={i.value.ravel().tolist()}" if i.value.size <= 8 and i.value.dtype.kind in "iub" else "")
        for i in case.inputs
    )
    return f"{case.type}-{case.version}({inputs}; {', '.join(f'{k}={text(v)}' for k, v in case.attributes.items())})"


def brief(words: str) -> str:
    """OpenVINO's error message without the lines that name its sources."""
    lines = [line for line in words.splitlines() if line and not line.startswith(("Exception from", "Check '"))]
    return " / ".join(lines)[-400:]


if __name__ == "__main__":
    arguments = [a for a in sys.argv[1:] if not a.startswith("-")]
    numbers = [int(a) for a in arguments if a.isdigit()]
    words = [a for a in arguments if not a.isdigit()]
    sys.exit(bool(main(*(numbers + [1000, 1][len(numbers) :])[:2], words, every="--every" in sys.argv)))
