"""How far a planned result may be from the plain one: as far as rounding can bring it.

Rounding is measured, not estimated: the program is run plainly again with every operand of every operation that rounds
moved at random by one unit in the last place. A plan adds up in another order, so it differs by about as much; a wrong
number differs by far more. What is exact (exact.py) is not moved, and must come out equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from irload.core.element import bf16
from irload.core.tensor import Array
from irload.plan.interpreter import Run
from irload.plan.schedule import ScheduledNode
from tests.fuzz.programs.exact import MOVES

UNITS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7, "float64": 2.0**-52}


@dataclass(frozen=True)
class Rounding:
    """How a plan rounds: a number of f32 by a `unit`; it may be `factor` times as far away as was measured.

    `least`: the share of a unit of the largest number that counts as measured anyway. `shakes`: plain runs in which
    operands move: by a unit up or down, or `coarse`, as they do where they are rounded to bf16. `wide`: the share of
    its spread from which a tolerance says little of an output. `exact`: True where results that no order of additions
    can round are equal, and integers and what is not finite are the plain ones.
    """

    unit: float
    factor: float
    least: float
    shakes: int
    wide: float
    exact: bool
    coarse: bool = False

    def of(self, type: str) -> float | None:
        """The unit of a type of NumPy's, None for one that does not round."""
        return self.unit if type == "float32" else UNITS.get(type)


ROUNDINGS = {
    "f32": Rounding(UNITS["float32"], factor=32, least=0.1, shakes=1, wide=1e-3, exact=True),
    "bf16": Rounding(2.0**-8, factor=8, least=0.25, shakes=5, wide=1.0, exact=False, coarse=True),
}
"""By precision. In f32 one run does not find the largest distance, and Winograd's convolutions err ten times as much as
sums do; in bf16 every operand moves, though only those of products are rounded."""
GATED = {"LSTMSequence", "GRUSequence", "RNNSequence", "Gelu"}
"""They add 1 to what may almost be −1, as sigmoids taken as (1 + tanh(x/2))/2 do: it errs by a unit in the last place
of 1."""
STILL = MOVES | {"Parameter", "Const", "Result", "Assign"}


class Shaken(Run):
    """A plain run in which operands move by a unit in the last place."""

    def __init__(self, compiled: Any, variables: dict[str, Array], rounding: Rounding, seed: int) -> None:
        super().__init__(compiled, variables)
        self._rounding = rounding
        self._rng = np.random.default_rng(seed)
        self.overflows = False
        """True once a number is so large that the order of additions decides whether it becomes infinite."""

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        node = scheduled.node
        if node.type in STILL or (self._rounding.exact and node.name.startswith("exact_")):
            results = super().run_node(scheduled, inputs)
            self.overflows |= any(_is_huge(a) for a in results)
            return results
        self.overflows |= node.type == "ReduceProd" and _may_leave(inputs[0])
        still = {"FakeQuantize": range(9), "Power": (1,)}.get(node.type, ())  # a whole exponent has to stay whole
        moved = [a if k in still else self._moved(a) for k, a in enumerate(inputs)]
        results = super().run_node(scheduled, moved)
        self.overflows |= any(_is_huge(a) for a in results)
        return tuple(self._moved(a, 1.0 if node.type in GATED else 0.0) for a in results)

    def _moved(self, array: Array, least: float = 0.0) -> Array:
        """The array, each element moved by a unit in its last place, or in that of `least` where this is larger."""
        unit = self._rounding.of(array.dtype.name)
        if unit is None or not array.size:
            return array
        if self._rounding.coarse and array.dtype == np.float32:  # alike where numbers are: their errors add up
            scale = np.float32(self._rng.uniform(0.5, 1))
            with np.errstate(all="ignore"):
                return np.asarray((array * scale).astype(bf16.dtype).astype(np.float32) / scale)
        signs = self._rng.integers(0, 2, array.shape, np.int8).astype(np.float32) * 2 - 1
        with np.errstate(all="ignore"):
            wide = array.astype(np.float32)
            return np.asarray(wide + signs * unit * np.maximum(np.abs(wide), np.float32(least))).astype(array.dtype)


HUGE = 1e30
HUGE_HALF = 2.0**15


def _is_huge(array: Array) -> bool:
    """True where some finite number is close to overflowing, or one of f16 may have: plans compute those in f32."""
    if array.dtype == np.float16:
        return bool((np.abs(array) > HUGE_HALF).any())
    if array.dtype != np.float32 or not array.size:
        return False
    size = np.abs(array)
    return bool(((size > HUGE) & (size < np.inf)).any())


def _may_leave(factors: Array) -> bool:
    """True where the product of some of these numbers may overflow or become subnormal, as their order has it."""
    sizes = np.abs(factors.astype(np.float64))
    exponents = np.log2(sizes[np.isfinite(sizes) & (sizes > 0)])
    return bool(max(exponents[exponents > 0].sum(), -exponents[exponents < 0].sum()) > np.log2(HUGE))


def distance(a: Array, b: Array) -> float:
    """The largest difference where both are finite; infinite where that is nowhere, though `a` has finite numbers."""
    if a.dtype.kind not in "fV" or a.shape != b.shape:
        return 0.0
    with np.errstate(all="ignore"):
        gap = np.abs(a.astype(np.float64) - b.astype(np.float64))
    known = gap[np.isfinite(gap)]
    if not known.size and np.isfinite(a).any():
        return np.inf
    return float(known.max(initial=0))


def scale(array: Array) -> float:
    """The standard deviation of what is finite, or the largest magnitude where that is nothing."""
    wide = array.astype(np.float64).reshape(-1)
    wide = wide[np.isfinite(wide)]
    if not wide.size:
        return 0.0
    return float(wide.std()) or float(np.abs(wide).max(initial=0))


def differs(plain: Array, fast: Array, tolerance: float | None) -> str | None:
    """What tells a result from the plain one, None where nothing does. No tolerance: it must be equal.

    With an infinite one nothing can be said but that type and shape are right.
    """
    if plain.dtype != fast.dtype or plain.shape != fast.shape:
        return f"{fast.dtype}{list(fast.shape)} where plain gives {plain.dtype}{list(plain.shape)}"
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
