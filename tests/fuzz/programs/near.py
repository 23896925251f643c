"""The tolerance of a planned result, derived from the effect of rounding on the plain result.

This effect is measured, not estimated: the program runs plainly once more, while every operand of every operation that
rounds is perturbed at random by one unit in the last place. A plan adds in another order, so its results differ by
about as much; a wrong result differs by far more. Exact values (exact.py) are not perturbed and must be equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irload.core.element import bf16
from irload.core.tensor import Array
from irload.plan.interpreter import InterpreterRun
from irload.plan.schedule import ScheduledNode
from irload.plan.wide import SHORT
from tests.fuzz.programs.exact import MOVES

UNITS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}
NORMAL = {"float16": 2.0**-14}
"""The smallest normal number of each type with frequent subnormal numbers, which have the unit of this number."""


@dataclass(frozen=True)
class RoundingModel:
    """How a plan rounds, and how much its results may differ from plain results.

    `unit`: relative rounding error of an f32 number. `factor`: results may differ by this multiple of the measured
    distance. `floor`: lower bound of this distance, as a share of a unit of the largest number. `runs`: number of plain
    runs with perturbed operands. `too_wide`: share of an output's spread from which a tolerance counts as meaningless.
    `exact`: True if results that no order of additions can round must be equal, and integers, NaN and
    infinities must match. `coarse`: operands are rounded to bf16, instead of moved by one unit up or down.
    """

    unit: float
    factor: float
    floor: float
    runs: int
    too_wide: float
    exact: bool
    coarse: bool = False
    overflow: float = 1e30
    """Magnitude beyond which the order of additions may decide whether a sum becomes infinite."""

    def of(self, type: str) -> float | None:
        """The unit of a NumPy type, or None if it does not round."""
        return self.unit if type == "float32" else UNITS.get(type)


ROUNDINGS = {
    "f32": RoundingModel(UNITS["float32"], factor=32, floor=0.1, runs=1, too_wide=1e-3, exact=True),
    "bf16": RoundingModel(2.0**-8, factor=8, floor=0.25, runs=5, too_wide=1.0, exact=False, coarse=True),
}
"""The rounding of each precision.

In f32 a single run rarely reaches the largest distance, and Winograd's convolutions have ten times the error of sums;
in bf16 every operand is perturbed, although plans round only the operands of products.
"""
INSIDE = {
    "f16": RoundingModel(UNITS["float16"], factor=8, floor=0.25, runs=3, too_wide=1.0, exact=True, overflow=2.0**15),
    "bf16": RoundingModel(UNITS["bfloat16"], factor=8, floor=0.25, runs=3, too_wide=1.0, exact=True),
}
"""The rounding for programs whose plans round intermediate values to a 16-bit type (`rounded_inside`), by this type."""
GATED = {"LSTMSequence", "GRUSequence", "RNNSequence", "Gelu"}
"""Operations whose kernels add 1 to values close to −1, for example in sigmoids computed as (1 + tanh(x/2))/2.

Their absolute error is a unit in the last place of 1.
"""
UNPERTURBED = MOVES | {"Parameter", "Const", "Result", "Assign"}


class PerturbedRun(InterpreterRun):
    """A plain run in which operands are perturbed by a unit in the last place."""

    def __init__(self, compiled: Any, variables: dict[str, Array], rounding: RoundingModel, seed: int) -> None:
        super().__init__(compiled, variables)
        self._rounding = rounding
        self._rng = np.random.default_rng(seed)
        self.overflows = False
        """True once a number is so large that the order of additions decides whether it becomes infinite."""

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        node = scheduled.node
        if node.type in UNPERTURBED or (self._rounding.exact and node.name.startswith("exact_")):
            results = super().run_node(scheduled, inputs)
            self.overflows |= any(self._is_huge(a) for a in results)
            return results
        self.overflows |= node.type == "ReduceProd" and _may_leave(inputs[0])
        unperturbed = {"FakeQuantize": range(9), "Power": (1,)}.get(
            node.type, ()
        )  # an integer exponent must stay an integer
        perturbed = [a if k in unperturbed else self._perturbed(a) for k, a in enumerate(inputs)]
        results = super().run_node(scheduled, perturbed)
        self.overflows |= any(self._is_huge(a) for a in results)
        return tuple(self._perturbed(a, 1.0 if node.type in GATED else 0.0) for a in results)

    def _is_huge(self, array: Array) -> bool:
        """Whether a finite number is close to overflow, or an f16 one may have overflowed: plans compute f16 in f32."""
        if array.dtype == np.float16:
            return bool((np.abs(array) > HALF_OVERFLOW).any())
        if array.dtype != np.float32 or not array.size:
            return False
        size = np.abs(array)
        return bool(((size > self._rounding.overflow) & (size < np.inf)).any())

    def _perturbed(self, array: Array, floor: float = 0.0) -> Array:
        """The array, with each element moved by a unit in its last place, or by a unit of `floor` if this is larger."""
        unit = self._rounding.of(array.dtype.name)
        if unit is None or not array.size:
            return array
        if self._rounding.coarse and array.dtype == np.float32:  # equal numbers change equally: their errors add up
            scale = np.float32(self._rng.uniform(0.5, 1))
            with np.errstate(all="ignore"):
                return np.asarray((array * scale).astype(bf16.dtype).astype(np.float32) / scale)
        signs = self._rng.integers(0, 2, array.shape, np.int8).astype(np.float32) * 2 - 1
        with np.errstate(all="ignore"):
            wide = array.astype(np.float32)
            sizes = np.maximum(np.abs(wide), np.where(wide == 0, floor, max(floor, NORMAL.get(array.dtype.name, 0))))
            return np.asarray(wide + signs * np.float32(unit) * sizes).astype(array.dtype)


OVERFLOW = 1e30
HALF_OVERFLOW = 2.0**15


def _may_leave(factors: Array) -> bool:
    """Whether the product of some of these numbers may overflow or become subnormal, depending on the order."""
    sizes = np.abs(factors.astype(np.float64))
    exponents = np.log2(sizes[np.isfinite(sizes) & (sizes > 0)])
    return bool(max(exponents[exponents > 0].sum(), -exponents[exponents < 0].sum()) > np.log2(OVERFLOW))


def distance(a: Array, b: Array) -> float:
    """The largest difference of elements finite in both arrays; infinite if there are none, but `a` has finite ones."""
    if a.dtype.kind not in "fV" or a.shape != b.shape:
        return 0.0
    with np.errstate(all="ignore"):
        gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
    known = gap[np.isfinite(gap)]
    if not known.size and np.isfinite(a).any():
        return np.inf
    return float(known.max(initial=0))


def scale(array: Array) -> float:
    """The standard deviation of the finite elements, or their largest magnitude if it is zero."""
    wide = array.astype(np.float64).reshape(-1)
    wide = wide[np.isfinite(wide)]
    if not wide.size:
        return 0.0
    return float(wide.std()) or float(np.abs(wide).max(initial=0))


def _beside(plain: Array, fast: Array, tolerance: float) -> tuple[Array, Array]:
    """Both arrays as f32, plain results rounded to the 16-bit type of `fast`.

    Plain results are replaced by `fast` where both differ by at most the tolerance and the rounding to 16 bits.
    """
    short = fast.dtype
    with np.errstate(all="ignore"):
        rounded, planned = plain.astype(short).astype(np.float32), fast.astype(np.float32)
        if tolerance == np.inf:
            return rounded, planned
        near = [(plain + way * tolerance).astype(short).astype(np.float32) for way in (-1, 1)]
    between = (planned >= near[0]) & (planned <= near[1])
    return np.where(between, planned, rounded), planned


def differs(plain: Array, fast: Array, tolerance: float | None) -> str | None:
    """How a result differs from the plain one, or None. Without a tolerance they must be equal.

    With an infinite tolerance only type and shape are compared. A 16-bit result may also be compared with a plain f32
    result, which is rounded.
    """
    short = plain.dtype == np.float32 and fast.dtype in SHORT
    if (plain.dtype != fast.dtype and not short) or plain.shape != fast.shape:
        return f"{fast.dtype}{list(fast.shape)} where plain gives {plain.dtype}{list(plain.shape)}"
    if short:
        plain, fast = _beside(plain, fast, np.inf if tolerance is None else tolerance)
    if tolerance == np.inf:
        return None
    if plain.dtype.kind not in "fV":
        wrong = plain != fast
    else:
        with np.errstate(all="ignore"):
            a, b = plain.astype(np.float64), fast.astype(np.float64)
            same = (a == b) | (np.isnan(a) & np.isnan(b))
            wrong = ~(same | (np.abs(a - b) <= tolerance)) if tolerance is not None else ~same
    if not wrong.any():
        return None
    where = tuple(int(k) for k in np.argwhere(wrong)[0])
    count = int(np.count_nonzero(wrong))
    bound = "exactly" if tolerance is None else f"within {tolerance:.3g}"
    return f"{count} of {plain.size} differ: {fast[where]} at {list(where)} where plain gives {plain[where]} ({bound})"
