"""Mutants: valid cases with one or two faults, for comparing the verdicts of irload and OpenVINO."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from irload.core import element as et
from irload.core.attribute import Attribute
from irload.ops.registry import resolve
from tests.harness.case import GENERATORS, Case, Input, Random, text
from tests.harness.material import pick

INTEGERS = (-(2**31), -100, -3, -2, -1, 0, 1, 2, 3, 4, 5, 7, 100, 2**31, 2**40)
NUMBERS = ("-1", "-0.5", "0", "0.5", "1", "2", "1e30", "nan", "inf", "-inf")
WORDS = ("", "nonsense", "explicit", "none", "linear", "1")
BOOLEANS = ("true", "false", "0", "maybe")
TYPES = ("f32", "f16", "i32", "i64", "u8", "boolean", "f64", "nonsense", "dynamic", "u4", "string")
ELEMENTS = (et.f32, et.f16, et.bf16, et.f64, et.i8, et.i32, et.i64, et.u8, et.u64, et.boolean, et.string)
DIMS = (0, 1, 2, 3, 4, 5, 7)
BIG = 3_000
"""Maximum number of elements of a mutant's input, so that many run in little time."""

Mutation = Callable[[Random, Case], "Case | None"]


def mutant(seed: int, index: int) -> Case:
    """Mutant `index` of a seed. Consecutive mutants use consecutive rows; each has a separate random generator."""
    rows = sorted(GENERATORS)
    rng = np.random.default_rng([seed, index])
    row = rows[index % len(rows)]
    case = pick(rng, GENERATORS[row])(rng)
    for _ in range(1 if rng.random() < 0.7 else 2):
        for _ in range(20):  # not every mutation applies to every case
            spoilt = pick(rng, MUTATIONS)(rng, case)
            if spoilt is not None:
                case = spoilt
                break
    return case


def _declared(case: Case) -> list[Attribute]:
    return [a for a in resolve(case.type, case.version)[0].declared.values() if not a.supplied]


def set_attribute(rng: Random, case: Case) -> Case | None:
    """Set an attribute to a boundary value of its kind."""
    declared = _declared(case)
    if not declared:
        return None
    chosen = pick(rng, declared)
    return _with(case, chosen.xml_name, _value(rng, chosen, case.attributes.get(chosen.xml_name)))


def _value(rng: Random, chosen: Attribute, now: Any) -> str:
    if chosen.kind in ("integers", "numbers"):
        items = text(now).split(",") if now not in (None, "", [], ()) else []
        options = INTEGERS if chosen.kind == "integers" else NUMBERS
        roll = rng.random()
        if roll < 0.25 and items:
            items.pop()
        elif roll < 0.5 or not items:
            items += [str(pick(rng, options))] * int(rng.integers(1, 4))
        elif roll < 0.55:
            items = []
        else:
            items[int(rng.integers(len(items)))] = str(pick(rng, options))
        return ",".join(items)
    if chosen.kind.startswith("one of"):
        return pick(rng, WORDS)
    options = {"integer": INTEGERS, "number": NUMBERS, "boolean": BOOLEANS, "element type": TYPES}
    return str(pick(rng, options.get(chosen.kind, WORDS)))


def drop_attribute(rng: Random, case: Case) -> Case | None:
    """Remove an attribute."""
    if not case.attributes:
        return None
    gone = pick(rng, sorted(case.attributes))
    return replace(case, attributes={k: v for k, v in case.attributes.items() if k != gone})


def malform_attribute(rng: Random, case: Case) -> Case | None:
    """Set an attribute to an invalid value of its kind."""
    if not case.attributes:
        return None
    return _with(case, pick(rng, sorted(case.attributes)), pick(rng, ("x", "1.5", "1;2", "--1", "0x10", "1,,2", " ")))


def change_rank(rng: Random, case: Case) -> Case | None:
    """Add or remove an axis of an input."""

    def changed(operand: Input) -> Input | None:
        value = operand.value
        roll = rng.random()
        if roll < 0.15:
            return replace(operand, value=value.reshape(-1)[:1].reshape(())) if value.size else None
        if roll < 0.5 and value.ndim:
            axis = int(rng.integers(value.ndim))
            return replace(operand, value=np.take(value, [0], axis).squeeze(axis)) if value.size else None
        return replace(operand, value=np.expand_dims(value, int(rng.integers(value.ndim + 1))))

    return _one_input(rng, case, changed)


def change_dim(rng: Random, case: Case) -> Case | None:
    """Change a dim of an input."""

    def changed(operand: Input) -> Input | None:
        if not operand.value.ndim or not operand.value.size:
            return None
        axis, size = int(rng.integers(operand.value.ndim)), pick(rng, DIMS)
        if operand.value.size // max(operand.value.shape[axis], 1) * size > BIG:
            return None
        return replace(operand, value=np.take(operand.value, np.arange(size) % operand.value.shape[axis], axis))

    return _one_input(rng, case, changed)


def change_type(rng: Random, case: Case) -> Case | None:
    """Change the element type of an input."""

    def changed(operand: Input) -> Input | None:
        to = pick(rng, ELEMENTS)
        if to is operand.element or (to is et.string and operand.constant):
            return None
        if operand.element is et.string or to is et.string:
            return replace(operand, value=np.zeros(operand.value.shape, to.dtype), element=to)
        with np.errstate(all="ignore"):
            return replace(operand, value=operand.value.astype(np.float64).astype(to.dtype), element=to)

    return _one_input(rng, case, changed)


def change_constant(rng: Random, case: Case) -> Case | None:
    """Set an integer of a small secondary input out of range; the input may become a constant."""

    def changed(operand: Input) -> Input | None:
        kind = operand.value.dtype.kind
        if kind not in "iu" or not 0 < operand.value.size <= 64:
            return None
        value = operand.value.copy()
        spot = int(rng.integers(value.size))
        value.ravel()[spot] = np.array(pick(rng, INTEGERS)).astype(value.dtype)
        return replace(operand, value=value, constant=operand.constant or bool(rng.random() < 0.5))

    return _one_input(rng, case, changed)


def toggle_constant(rng: Random, case: Case) -> Case | None:
    """Turn a constant into a runtime input, or the reverse."""
    return _one_input(rng, case, lambda g: None if g.element is et.string else replace(g, constant=not g.constant))


def drop_input(rng: Random, case: Case) -> Case | None:
    """Remove an input."""
    if not case.inputs or case.xml:
        return None
    gone = len(case.inputs) - 1 if rng.random() < 0.6 else int(rng.integers(len(case.inputs)))
    return replace(case, inputs=[i for k, i in enumerate(case.inputs) if k != gone])


def add_input(rng: Random, case: Case) -> Case | None:
    """Add an input."""
    if not case.inputs or case.xml:
        return None
    return replace(case, inputs=[*case.inputs, pick(rng, list(case.inputs))])


MUTATIONS: tuple[Mutation, ...] = (
    *(set_attribute, set_attribute, set_attribute, drop_attribute, malform_attribute),
    *(change_rank, change_rank, change_dim, change_dim, change_type, change_type),
    *(change_constant, change_constant, toggle_constant, drop_input, add_input),
)


def _with(case: Case, name: str, value: str) -> Case:
    return replace(case, attributes={**case.attributes, name: value})


def _one_input(rng: Random, case: Case, change: Callable[[Input], Input | None]) -> Case | None:
    if not case.inputs:
        return None
    k = int(rng.integers(len(case.inputs)))
    changed = change(case.inputs[k])
    if changed is None:
        return None
    inputs = list(case.inputs)
    inputs[k] = changed
    return replace(case, inputs=inputs)
