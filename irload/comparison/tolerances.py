"""Criteria of agreement: tolerances by type, and allowances for the effect of rounding."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

import numpy as np

from irload.comparison.measures import rms
from irload.core.element import ELEMENTS
from irload.core.op import evaluate
from irload.core.tensor import Array
from irload.graph import Node, ancestors
from irload.runtime.observation import Visit, matches

__all__ = [
    "TOLERANCES",
    "TYPES",
    "UNITS",
    "at_edges",
    "floor",
    "is_constant_expression",
    "jittered",
    "sensitivity",
    "tolerance",
]

TOLERANCES: Mapping[str, float] = {"f64": 1e-4, "f32": 1e-4, "f16": 5e-3, "bf16": 4e-2, "f8": 2e-1, "int8": 0.0}
"""The greatest |a − b| / (|b| + rms(b)) that passes, by type. i8 and u8 may differ by one, others not at all."""
_GROUPS = {"i8": "int8", "u8": "int8", **{e.name: "f8" for e in ELEMENTS if e.name.startswith("f8")}}
"""The key in `TOLERANCES` of the types that share one."""
TYPES = frozenset({*TOLERANCES, *(e.name for e in ELEMENTS)})
"""The keys of tolerances that are types; all others are patterns of layer names."""
_ROUNDING = {"f64": 1e-12, "f32": 2e-6, "f16": 2e-3, "bf16": 2e-2}
"""Bound of the rounding error relative to the root mean square of the inputs: sums may cancel."""
UNITS = {"f64": 1e-15, "f32": 2e-7, "f16": 2.0**-11, "bf16": 2.0**-8}
"""The maximum relative error of one rounding, by the type of the computation."""
ROUNDS = frozenset({"Add", "Subtract", "Multiply", "Divide", "MatMul", "Power"})
"""Operations of constant expressions that round; the others only move values or widen them."""
DRAWS = 2
"""Number of perturbed runs per layer."""


def tolerance(element: str, theirs: Array, name: str, wanted: Mapping[str, float]) -> float:
    """Return the tolerance of the first pattern that matches the name, else of the type; the looser of two types."""
    for pattern, value in wanted.items():
        if pattern not in TYPES and matches(name, pattern):
            return value
    known = {**TOLERANCES, **wanted}
    types = {element, {"float16": "f16", "bfloat16": "bf16"}.get(theirs.dtype.name, element)}
    return max(known.get(t, known.get(_GROUPS.get(t, ""), 0.0)) for t in types)


def floor(visit: Visit, element: str) -> float:
    """Return the absolute difference that counts as zero: rounding, or one step of i8 and u8."""
    if element in ("i8", "u8"):
        return 1.0
    return _ROUNDING.get(element, 0.0) * max((rms(i) for i in visit.inputs if i.dtype.kind in "fV"), default=0.0)


def at_edges(visit: Visit, ours: Array, theirs: Array, element: str) -> Array:
    """Return `theirs`, moved by one level of FakeQuantize towards `ours` where the input is halfway between two levels.

    Rounding errors decide the level of these elements. The levels are per channel.
    """
    levels = visit.node.op.attributes.get("levels") if visit.node.type == "FakeQuantize" else None
    if not levels or len(visit.inputs) != 5 or ours.dtype.kind not in "fV":
        return theirs
    x, low, high, first, last = (i.astype(np.float64) for i in visit.inputs)
    with np.errstate(all="ignore"):
        at = (x - low) / (high - low) * (levels - 1)
        # Not only the input is rounded: the quotient and the product are, too.
        is_edge = np.abs(at - np.floor(at) - 0.5) <= 4 * UNITS.get(element, UNITS["f32"]) * (levels - 1)
        step = np.broadcast_to(np.abs(last - first) / (levels - 1), ours.shape)
        apart = ours.astype(np.float64) - theirs.astype(np.float64)
        nearer = np.broadcast_to(is_edge, ours.shape) & (np.abs(np.abs(apart) - step) < np.abs(apart))
        return np.where(nearer, theirs.astype(np.float64) + np.sign(apart) * step, theirs.astype(np.float64))


def sensitivity(visit: Visit, index: int, computed: str) -> float:
    """Return twice the largest change of an output when rounding errors are added to its inputs.

    This bounds the effect of the other side's rounding at other layers. Decompressed weights change by the rounding
    error of their decompressed type. `computed`: the type in which the other side computes f32.
    """
    op = visit.node.op
    if op.supplied or not op.folds:
        return 0.0
    greatest = 0.0
    rng = np.random.default_rng(0)
    ours = visit.outputs[index].astype(np.float64)
    for _ in range(DRAWS):
        moved = [jittered(a, unit(s.node, computed), rng) for a, s in zip(visit.inputs, visit.node.inputs, strict=True)]
        again = evaluate(op, moved, visit.types, cast(Any, None))[index]
        if again.shape == ours.shape:
            apart = np.abs(again.astype(np.float64) - ours)
            greatest = max(greatest, float(np.max(apart[np.isfinite(apart)], initial=0.0)))
    return 2 * greatest


def unit(node: Node, computed: str) -> float:
    """Return the relative error that rounding may cause in the outputs of a node."""
    if node.type == "Const":
        return 0.0
    if is_constant_expression(node):
        return max((UNITS.get(e, 0.0) for e in _elements(node)), default=0.0)
    return max((UNITS.get(_computed(o.type.element.name, computed), 0.0) for o in node.outputs), default=0.0)


def jittered(array: Array, unit: float, rng: np.random.Generator) -> Array:
    """Return the array with each float changed by ± this relative amount."""
    if not unit or array.dtype.kind not in "fV":
        return array
    wide = array.astype(np.float64 if array.dtype == np.float64 else np.float32)
    moved = (wide * (1 + unit * rng.choice([-1, 1], array.shape))).astype(array.dtype)
    return np.where(np.isfinite(moved), moved, array)  # masks contain the least finite number


def is_constant_expression(node: Node) -> bool:
    """Whether a node depends on constants alone, as decompressed weights do."""
    pending, seen = [node], {node}
    while pending:
        last = pending.pop()
        if last.type != "Const" and not (last.inputs and last.op.folds):
            return False
        fresh = {i.node for i in last.inputs} - seen
        seen |= fresh
        pending += fresh
    return True


def _elements(node: Node) -> set[str]:
    """Return the float types to which a constant expression is rounded; its constants are exact."""
    rounding = (n for n in ancestors([node]) if n.type in ROUNDS)
    return {o.type.element.name for n in rounding for o in n.outputs if o.type.element.is_float}


def _computed(element: str, computed: str) -> str:
    return computed if element == "f32" else element
