"""Groups of steps that have equal kernels at every shape, except for addresses.

The steps of a deep network repeat. Steps with equal fields, whose operands have equal symbolic shapes, strides and
types, have equal kernels at every shape, which are selected once per group.
"""

from __future__ import annotations

from collections.abc import Container, Hashable, Mapping, Sequence
from dataclasses import fields

import numpy as np

from irload.core.tensor import Array
from irload.plan.ir.compressed import compressed
from irload.plan.ir.constant import Constant
from irload.plan.ir.program import Step, Value
from irload.plan.ir.sized import hashable
from irload.plan.memory.aliases import Aliases
from irload.record import record


@record(eq=False)
class Group:
    """Steps with equal kernels except for addresses.

    `positions`: the positions of the steps in the segment. `values`: for each step, its distinct values in
    corresponding order. `numbers`: for each index into this order, the numbers of the values of all steps; 0 for
    constants that do not depend on the shape.
    """

    positions: tuple[int, ...]
    steps: tuple[Step, ...]
    values: tuple[tuple[Value, ...], ...]
    numbers: tuple[Array, ...]
    is_external: bool
    """True if some values are in memory outside the arena."""


def grouped(steps: Sequence[Step], aliases: Aliases, numbering: Mapping[Value, int]) -> list[Group]:
    """The groups of the steps that have kernels. `numbering`: the numbers of values (see `Preparing.prepare`)."""
    groups: dict[Hashable, list[int]] = {}
    for k, step in enumerate(steps):
        if step.view is not None and aliases.alias(step.output) is not None:
            continue  # a view of memory has no kernels at any shape
        groups.setdefault(_signature(step, aliases, numbering), []).append(k)
    return [_group([(k, steps[k]) for k in group], numbering, aliases) for group in groups.values()]


def distinct_values(step: Step) -> list[Value]:
    """The inputs and outputs of a step, each once."""
    return list(dict.fromkeys((*step.inputs, *step.outputs)))


def _group(members: Sequence[tuple[int, Step]], numbering: Mapping[Value, int], aliases: Aliases) -> Group:
    positions, steps = zip(*members, strict=True)
    values = tuple(tuple(distinct_values(step)) for step in steps)
    numbers = (np.array([numbering.get(v, 0) for v in slot], np.int64) for slot in zip(*values, strict=True))
    is_external = any(v.source is None and aliases.root(v) in aliases.external for v in values[0])
    return Group(positions, steps, values, tuple(numbers), is_external)


def _signature(step: Step, aliases: Aliases, late: Container[Value]) -> Hashable:
    """A key that is equal for steps with equal kernels at every shape, except for addresses.

    `late`: a container with the constants that are computed when a shape is bound.
    """
    names = [f.name for f in fields(step) if f.name not in ("inputs", "outputs", "origin")]
    parameters = tuple(hashable(getattr(step, name)) for name in names)
    values = distinct_values(step)
    slots = {value: k for k, value in enumerate(values)}
    order = tuple(tuple(slots[v] for v in side) for side in (step.inputs, step.outputs))
    roots: dict[Value, Value] = {}
    computed = tuple(value.source is not None and value in late for value in values)
    return type(step), parameters, order, computed, *(_value_key(value, aliases, roots, slots) for value in values)


def _form(constant: Constant) -> Hashable:
    """The form of compressed weights; None if the constant is stored uncompressed."""
    weights = compressed(constant)
    if weights is None:
        return None
    factors = (weights.stored, weights.scale, weights.zero_point)
    return tuple(f and (f.shape, f.dtype, f.element) for f in factors)


def _value_key(value: Value, aliases: Aliases, roots: dict[Value, Value], slots: Mapping[Value, int]) -> Hashable:
    """The properties of a value on which kernels depend. `roots`: the first value of the step in each root."""
    shape = value.dtype, hashable(value.shape)
    if value.source is not None:
        stored = value.source.recipe is not None and value.source.recipe.widens
        return "constant", *shape, value.source.dtype, stored, _form(value.source)
    root, position = aliases.root(value), aliases.strided(value)
    first = roots.setdefault(root, value)
    distance = position.offset - aliases.strided(first).offset
    view = aliases.alias(value) is not None
    layout = hashable(aliases.layout(value)), hashable(aliases.layout(root)), aliases.stored_dtype(root)
    return *shape, view, layout, hashable(position.strides), slots[first], hashable(distance)
