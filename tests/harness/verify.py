"""The checks of every case: irload against itself and against OpenVINO's runtime."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np

import irload
from irload.core.shape import Shape
from irload.errors import IRError
from irload.model import Model
from tests.harness import runtime
from tests.harness.case import Array, Case, Random
from tests.harness.ir import ir_of


class Disagreement(AssertionError):
    """A check that failed."""


def load(case: Case, shapes: Sequence[str | None] | None = None) -> Model:
    """The case as irload's model, read from its IR text like any file."""
    return irload.read_model(*ir_of(case, shapes))


def _given(case: Case) -> list[Array]:
    return [i.value for i in case.inputs if not i.constant]


def run(case: Case) -> list[Array]:
    """irload's plain outputs, after the checks that need no other runtime.

    Inference agrees, inputs are not mutated, and the planned run gives the same outputs as the plain one.
    """
    model = load(case)
    inputs = _given(case)
    before = [g.copy() for g in inputs]
    result = list(irload.compile_model(model, optimize=False)(inputs).values())
    planned = irload.compile_model(model, threads=2)(inputs)
    for old, new in zip(before, inputs, strict=True):
        if not _same_bytes(old, new):
            raise Disagreement(f"{case}: an input was mutated")
    for port, array in zip(model.outputs, result, strict=True):
        if array.dtype != port.element_type.dtype:
            raise Disagreement(f"{case}: computed {array.dtype}, inferred {port.element_type}")
        if not port.partial_shape.contains(Shape(*array.shape)):
            raise Disagreement(f"{case}: computed shape {array.shape}, inferred {port.partial_shape}")
    for plain, fast in zip(result, planned.values(), strict=True):
        if not same_up_to_rounding(plain, fast):
            raise Disagreement(f"{case}: the plan computes {_brief(fast)}, plainly it is {_brief(plain)}")
    return result


def same_up_to_rounding(plain: Array, fast: Array, tolerance: float = 1e-5) -> bool:
    """True if two runs differ by no more than the order of additions explains, relative to the largest value.

    If the largest value is below 0.1, the difference is relative to 0.1: functions like GELU cancel in their tails.
    """
    if plain.dtype != fast.dtype or plain.shape != fast.shape:
        return False
    if plain.dtype.kind not in "fV":
        return bool(np.array_equal(plain, fast))
    wide = plain.astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide)])
    scale = tolerance * float(finite.max(initial=0.1))
    rtol = max(tolerance, ROUNDING.get(plain.dtype.name, 0))
    return bool(np.allclose(fast.astype(np.float64), wide, rtol, scale, equal_nan=True))


def relax(case: Case, rng: Random) -> list[str | None]:
    """Shapes for the case's Parameters that still accept its inputs: some dims any, some bounded, sometimes no rank."""
    shapes: list[str | None] = []
    for operand in case.inputs:
        dims = [_relaxed(rng, n) for n in operand.value.shape]
        unranked = rng.random() < 0.08
        shapes.append(None if operand.constant or operand.static_shape else "..." if unranked else ",".join(dims))
    return shapes


def _relaxed(rng: Random, size: int) -> str:
    roll = rng.random()
    if roll < 0.4:
        return str(size)
    if roll < 0.7:
        return "?"
    low, high = max(size - int(rng.integers(0, 3)), 0), size + int(rng.integers(1, 4))
    return f"{low}..{high}" if roll < 0.9 else f"{low}.."


def check_shapes(case: Case, shapes: Sequence[str | None] | None = None, tally: Counter[str] | None = None) -> None:
    """irload infers the same types and partial shapes as OpenVINO: equal, not merely compatible.

    `tally` counts the comparisons, and the comparisons that differ or are only compatible.
    """
    tally = Counter() if tally is None else tally
    theirs = runtime.inferred(runtime.read(case, shapes))
    ours = [(p.element_type.name, p.partial_shape) for p in load(case, shapes).outputs]
    tally["shapes"] += 1
    if ours == theirs:
        return
    if case.inconsistent_shapes and all(a[0] == b[0] and a[1].meet(b[1]) for a, b in zip(ours, theirs, strict=True)):
        tally["compatible"] += 1
    else:
        tally["differing"] += 1
        raise Disagreement(f"{case} on {shapes or 'its shapes'}: inferred {ours}, OpenVINO {theirs}")


def check_relaxed_contains(case: Case, shapes: Sequence[str | None], results: Sequence[Array]) -> None:
    """Types inferred from relaxed inputs accept the results, and a run with relaxed inputs gives the same results."""
    model = load(case, shapes)
    for port, array in zip(model.outputs, results, strict=True):
        if not port.partial_shape.contains(Shape(*array.shape)):
            raise Disagreement(f"{case} on {shapes}: inferred {port.partial_shape}, computed {array.shape}")
    again = irload.compile_model(model, optimize=False)(_given(case))
    for a, b in zip(results, again.values(), strict=True):
        if not _same_bytes(a, b):
            raise Disagreement(f"{case} on {shapes}: the relaxed model computes something else")


def check_values(case: Case, ours: Sequence[Array]) -> None:
    """irload computes OpenVINO's results (or the expected ones of the case), within the case's tolerances."""
    theirs = [np.asarray(e) for e in case.expected] if case.expected is not None else runtime.outputs(case)
    if case.compare is not None:
        if not case.compare(ours, theirs):
            raise Disagreement(f"{case}: computed {ours}, OpenVINO {theirs}")
        return
    for k, (a, b) in enumerate(zip(ours, theirs, strict=True)):
        if a.shape != b.shape:
            raise Disagreement(f"{case}: output {k} has shape {a.shape}, OpenVINO's {b.shape}")
        if not close(a, b, case.rtol, case.atol):
            raise Disagreement(f"{case}: output {k} differs\n irload: {_brief(a)}\nruntime: {_brief(b)}")


ROUNDING = {"float16": 2e-3, "bfloat16": 1.6e-2, "float8_e4m3fn": 0.13, "float8_e5m2": 0.26}
"""One unit in the last place of each narrow type, relative: results rounded once may differ by that."""


def close(a: Array, b: Array, rtol: float, atol: float) -> bool:
    """Equal up to tolerance; NaNs and infinities agree with themselves. Narrow types may be off by one rounding."""
    if a.dtype == object:
        return bool(np.array_equal(a, b))
    if a.dtype.kind in "biu" and b.dtype.kind in "biu":
        return bool(np.array_equal(a, b))
    rtol = max(rtol, ROUNDING.get(a.dtype.name, 0))
    wide_a, wide_b = a.astype(np.float64), b.astype(np.float64)
    scale = atol if rtol < 1e-3 else max(atol, rtol)
    return bool(np.allclose(wide_a, wide_b, rtol, scale, equal_nan=True))


def _same_bytes(a: Array, b: Array) -> bool:
    if a.dtype == object or b.dtype == object:
        return bool(np.array_equal(a, b))
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


def _brief(a: Array) -> str:
    return f"{a.dtype}{list(a.shape)} {np.array2string(a.ravel()[:12], precision=7)}"


class Proofs:
    """All checks of one case. The constructor runs the checks within irload; `check` compares with OpenVINO."""

    def __init__(self, case: Case, rng: Random) -> None:
        self.case = case
        self.results = run(case)
        self.relaxed = relax(case, rng)

    def evidence(self) -> Iterator[bytes]:
        """Everything on irload's side that `check` compares or runs."""
        case = self.case
        yield f"{case.oracle} {case.rtol} {case.atol} {case.inconsistent_shapes} {case.compare is None}".encode()
        arrays = [*(i.value for i in case.inputs), *self.results, *map(np.asarray, case.expected or ())]
        for shapes in (None, self.relaxed):
            yield from ir_of(case, shapes)
            try:
                model = load(case, shapes)
                yield repr([(p.element_type.name, p.partial_shape) for p in model.outputs]).encode()
                if shapes is not None:
                    arrays += irload.compile_model(model, optimize=False)(_given(case)).values()
            except IRError as error:
                yield type(error).__name__.encode()
        for array in arrays:
            yield f"{array.dtype} {array.shape}".encode()
            yield repr(array.tolist()).encode() if array.dtype == object else array.tobytes()

    def check(self, tally: Counter[str] | None = None) -> None:
        """Compare values and shapes with OpenVINO, and run on relaxed shapes if OpenVINO accepts them."""
        case = self.case
        check_values(case, self.results)
        try:
            check_shapes(case, None, tally)
        except runtime.Rejected:
            if case.oracle != "none":
                raise
            return  # OpenVINO lacks the operation, so there is no comparison
        try:
            check_shapes(case, self.relaxed, tally)
        except runtime.Rejected:
            return  # OpenVINO cannot represent these relaxed shapes
        check_relaxed_contains(case, self.relaxed, self.results)


def check_everything(case: Case, rng: Random, tally: Counter[str] | None = None) -> None:
    """All checks of one case."""
    Proofs(case, rng).check(tally)
