"""Random cases of every operation with attributes and small inputs at the boundaries of their ranges.

`python -m tests.hostile.boundaries [N] [SEED] [ROW…]` runs N cases, each in a child process with limited memory, and
prints each case that ends neither in a typed error nor in a result of the inferred shape.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

import irload
from irload.core.attribute import Attribute
from irload.core.shape import Shape
from irload.ops.registry import resolve
from tests.harness.case import GENERATORS, Case, Input, Random, text
from tests.harness.children import Died, in_children, preload
from tests.harness.ir import ir_of
from tests.harness.material import pick
from tests.invalid_sweep import shown
from tests.ops.families import load_families

INTEGERS = (0, 1, -1, -2, 7, -(2**31), 2**31 - 1, 2**31, 2**40, 2**62, -(2**63), 2**63 - 1, 2**63, 2**64 - 1, 2**64)
NUMBERS = ("0", "-0.0", "-1", "5e-324", "1e-30", "1e30", "1e308", "-1e308", "1e400", "nan", "inf", "-inf", "")
WORDS = ("", "nonsense", "0", "1e308", "x" * 100_000)
SHAPES = ("", "0", "-1", "?", "...", "2147483648", "9223372036854775807,9223372036854775807", "1," * 70 + "1")
FLOATS = (0.0, -1.0, 1e-30, 1e30, 3e38, np.nan, np.inf, -np.inf)
HUGE = 100_000
"""Number of items of an overlong list."""

MEMORY, SECONDS = 3 << 29, 600
"""Bytes that a child may allocate, and seconds after which a case counts as hanging."""
LIMITS = irload.Limits(tensor_bytes=1 << 28, iterations=200)
Verdict = tuple[str, str]
"""("typed" | "computed" | "failed", message)."""


def boundary_case(seed: int, index: int, rows: Sequence[tuple[str, str]]) -> Case:
    """Return case `index` of a seed. Consecutive cases use consecutive rows; each has a separate random generator."""
    rng = np.random.default_rng([seed, index, 99])
    row = rows[index % len(rows)]
    case = pick(rng, GENERATORS[row])(rng)
    for _ in range(1 if rng.random() < 0.8 else 3):
        attributes = [a for a in resolve(case.type, case.version)[0].declared.values() if not a.supplied]
        if attributes and (rng.random() < 0.6 or not case.inputs):
            chosen = pick(rng, attributes)
            now = case.attributes.get(chosen.xml_name)
            case = replace(case, attributes={**case.attributes, chosen.xml_name: attribute(rng, chosen, now)})
        elif case.inputs:
            case = _with_input(rng, case)
    return case


def attribute(rng: Random, chosen: Attribute, now: object) -> str:
    """Return the text of an attribute value at the boundary of its kind."""
    if chosen.kind in ("integers", "numbers"):
        options = INTEGERS if chosen.kind == "integers" else NUMBERS
        items = text(now).split(",") if now not in (None, "", [], ()) else []
        roll = rng.random()
        if roll < 0.1:
            return ",".join([str(pick(rng, options))] * HUGE)
        if roll < 0.2 and items:
            items.pop()
        elif roll < 0.35 or not items:
            items += [str(pick(rng, options))] * int(rng.integers(1, 4))
        elif roll < 0.5:
            items = [str(pick(rng, options))] * len(items)
        else:
            items[int(rng.integers(len(items)))] = str(pick(rng, options))
        return ",".join(items)
    kinds = {"integer": INTEGERS, "number": NUMBERS, "shape": SHAPES}
    return str(pick(rng, kinds.get(chosen.kind, WORDS)))


def _with_input(rng: Random, case: Case) -> Case:
    """Replace one input, if it is small, by extreme values. It may change between constant and runtime input."""
    k = int(rng.integers(len(case.inputs)))
    operand = case.inputs[k]
    spoilt = extreme(rng, operand)
    return replace(case, inputs=[spoilt if i == k else other for i, other in enumerate(case.inputs)])


def extreme(rng: Random, operand: Input) -> Input:
    """Return the input with one or all of its elements replaced by an extreme value."""
    kind = operand.value.dtype.kind
    if kind not in "iuf" or not 0 < operand.value.size <= 64:
        return operand
    value = operand.value.copy()
    if kind == "f":
        number = np.array(pick(rng, FLOATS))
    else:
        info = np.iinfo(value.dtype)
        number = np.array(pick(rng, [n for n in INTEGERS if info.min <= n <= info.max] or [0]), value.dtype)
    with np.errstate(all="ignore"):
        value.ravel()[int(rng.integers(value.size)) if rng.random() < 0.6 else slice(None)] = number.astype(value.dtype)
    return replace(operand, value=value, constant=bool(rng.random() < 0.5))


def tried(case: Case) -> Verdict:
    """Return the verdict on a case, computed without and with the plan."""
    arrays = [i.value for i in case.inputs if not i.constant]
    try:
        model = irload.read_model(*ir_of(case), limits=LIMITS)
        answers: list[list[np.ndarray]] = []
        for optimize in (False, True):
            results = list(irload.compile_model(model, threads=1, optimize=optimize)(arrays).values())
            for port, result in zip(model.outputs, results, strict=True):
                if not port.partial_shape.contains(Shape(*result.shape)):
                    return "failed", f"inferred {port.partial_shape}, computed {result.shape} ({optimize=})"
            answers.append(results)
    except irload.IRError as error:
        words = f"{type(error).__name__}: {error}"
        loose = [w for w in ("out of memory", "not enough memory", "cannot be inferred from") if w in words]
        return ("failed" if loose else "typed"), words
    except Exception as error:
        return "failed", f"{type(error).__name__}: {error}"
    return "computed", ""


def verdicts(seed: int, count: int, rows: Sequence[tuple[str, str]]) -> list[tuple[int, Verdict]]:
    """Return the verdict on each case, run in a child process. A child that dies or hangs is a failure."""
    outcome = in_children(lambda k: tried(boundary_case(seed, k, rows)), count, SECONDS, MEMORY)
    return [(k, ("failed", str(v)) if isinstance(v, Died) else v) for k, v in enumerate(outcome)]


def main(count: int, seed: int, wanted: Sequence[str]) -> int:
    """Run the cases and print the failures. Returns the number of failures."""
    load_families()
    preload()
    rows = [r for r in sorted(GENERATORS) if not wanted or any(w in "-".join(r) for w in wanted)]
    table: Counter[str] = Counter()
    for k, (verdict, words) in verdicts(seed, count, rows):
        table[verdict] += 1
        if verdict == "failed":
            print(f"{k}: {shown(boundary_case(seed, k, rows))[:600]}\n     {words[:300]}", flush=True)
    print(f"{count} cases, seed {seed}: {dict(table)}")
    return table["failed"]


if __name__ == "__main__":
    words = [a for a in sys.argv[1:] if not a.isdigit()]
    numbers = [int(a) for a in sys.argv[1:] if a.isdigit()]
    count, seed = (*numbers, *(500, 1)[len(numbers) :])
    sys.exit(min(main(count, seed, words), 1))
