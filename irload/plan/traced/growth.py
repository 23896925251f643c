"""Variables that grow: Concat(past, new) → Assign becomes an append in place, after the rows of previous inferences.

Each token appends a row to the KV cache of a decoder. `past` is memory of the infer request, with the growing axis
outermost and free rows at the end; the result of the Concat is the same memory, with more rows. Exporters insert a
Gather along the batch, by which beam search reorders the cache. When the plan runs, its indices are compared with
0, 1, 2, …; they are usually equal, and then no row is copied.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from irload.core.size import hint, is_size
from irload.plan.ir.program import Program, Step, Value
from irload.plan.ir.sized import hashable
from irload.plan.ir.steps import ComputeStep, ConcatStep, GatherStep, ViewStep
from irload.plan.memory.layout import Layout
from irload.plan.memory.requests import MemoryRequests
from irload.plan.segments import Owners
from irload.plan.traced.numbers import Numbers
from irload.plan.variables import GrowingForm
from irload.record import record

LEAST_IN_PLACE = 1 << 14
"""Minimum bytes, at the traced shape, of variables that are read in place; smaller ones are copied.

A variable at a new address requires its kernels to be bound again.
"""


@record(eq=False)
class Growing:
    """A variable that grows along `axis`: the Concat `join` appends rows to `past`.

    `input`: the position of the variable's value among the caller's arrays. `order`: the position of the indices by
    which a Gather reorders axis `batch`, of length `size`; None without a Gather.
    """

    name: str
    past: Value
    join: ConcatStep
    axis: int
    input: int
    order: int | None = None
    batch: int = 0
    size: int = 0

    @property
    def layout(self) -> Layout:
        """The layout with the growing axis outermost, so that strides do not depend on its length."""
        return Layout((self.axis, *(k for k in range(len(self.past.shape)) if k != self.axis)))


class Growth:
    """The variables of a plan that grow, for all shapes."""

    def __init__(self, growing: Sequence[Growing], numbers: Numbers) -> None:
        first = growing[0]
        self.growing = growing
        self.order = first.order
        self.batch = first.batch
        past, joined = first.past.shape[first.axis], first.join.output.shape[first.axis]
        rows = past, joined - past, first.size
        shapes = [tuple(1 if k == g.axis else n for k, n in enumerate(g.past.shape)) for g in growing]
        self._fixed = self._forms(shapes) if not numbers.add(shapes) else None
        numbers.add(rows)
        self.rows = numbers.builder(rows)
        """Returns, for values of the sizes, the numbers of past and appended rows, and the length of axis `batch`."""
        self._shapes = numbers.builder(shapes)

    def forms(self, values: Sequence[int]) -> tuple[GrowingForm, ...]:
        """Return the variables for these values of the sizes."""
        return self._fixed or self._forms(self._shapes(values))

    def _forms(self, shapes: Sequence[tuple[int, ...]]) -> tuple[GrowingForm, ...]:
        return tuple(
            GrowingForm(g.name, shape, g.axis, g.past.dtype) for g, shape in zip(self.growing, shapes, strict=True)
        )


def split_growing(program: Program, owners: Owners, last: Any, given: Sequence[Value]) -> list[Growing]:
    """Remove the steps that assign and reorder variables that grow, and return these variables.

    All of them have the same length, append the same number of rows, and are reordered by the same indices. No step of
    the back end `last` may read them, because only other back ends bind kernels to new addresses. `given`: the values
    of the caller's arrays.
    """
    producers = program.producers()
    candidates: list[tuple[Growing, list[Step]]] = []
    for step in program.steps:
        if isinstance(step, ComputeStep) and step.op.type == "Assign":
            match = _matched(program, step, producers, owners, last, given)
            if match is not None:
                candidates.append(match)
    if not candidates:
        return []

    def growth(growing: Growing) -> object:
        past, joined = growing.past, growing.join.output
        sizes = past.shape[growing.axis], joined.shape[growing.axis], growing.size
        return hashable(sizes), growing.order, growing.batch

    ((most, _),) = Counter(growth(growing) for growing, _ in candidates).most_common(1)
    chosen = [(growing, steps) for growing, steps in candidates if growth(growing) == most]
    pasts = {given[growing.input]: growing.past for growing, _ in chosen}
    program.inputs = tuple(pasts.get(value, value) for value in program.inputs)
    for _, steps in chosen:
        for step in steps:
            program.replace([step], [])
            owners.pop(step)
    return [growing for growing, _ in chosen]


def _matched(
    program: Program,
    assign: ComputeStep,
    producers: dict[Value, Step],
    owners: Owners,
    last: Any,
    given: Sequence[Value],
) -> tuple[Growing, list[Step]] | None:
    """Return the variable that a step assigns, if it grows, and the steps to remove."""
    joined = assign.inputs[0]
    join = producers.get(joined)
    if not isinstance(join, ConcatStep) or len(join.inputs) != 2 or any(map(program.consumers, assign.outputs)):
        return None
    past, axis = join.inputs[0], join.axis
    read, removed, order, batch = past, list[Step]([assign]), None, 0
    gather = producers.get(past)
    if isinstance(gather, GatherStep):
        read, indices = gather.inputs
        order = given.index(indices) if indices in given else None
        batch = gather.axis
        if order is None or len(indices.shape) != 1 or gather.shared or batch == axis:
            return None
        if program.sole_consumer(past) is not join:
            return None
        removed.append(gather)
    origin = None if read.origin is None else read.origin.node
    if (
        read not in given
        or origin is None
        or origin.type != "ReadValue"
        or origin.op.attributes["variable_id"] != assign.op.attributes["variable_id"]
        or program.sole_consumer(read) is not (gather if isinstance(gather, GatherStep) else join)
        or not is_size(past.shape[axis])
        or not {joined, past, *assign.outputs}.isdisjoint(program.returned)
        or read.dtype != joined.dtype
        or not _is_relocatable(program, joined, assign, owners, last)
        or owners[join] is last
    ):
        return None
    name = assign.op.attributes["variable_id"]
    return Growing(name, past, join, axis, given.index(read), order, batch, read.shape[batch]), removed


def _is_relocatable(program: Program, value: Value, assign: Step | None, owners: Owners, last: Any) -> bool:
    """True if no step of `last` reads a value or a view of it, except `assign`."""
    for step in program.consumers(value):
        if step is assign:
            continue
        if owners[step] is last:
            return False
        if isinstance(step, ViewStep):
            (output,) = step.outputs
            if output in program.returned or not _is_relocatable(program, output, assign, owners, last):
                return False
    return True


def read_in_place(program: Program, owners: Owners, last: Any, growing: Sequence[Growing]) -> list[Value]:
    """Return the variables that a plan reads but does not extend, such as the keys of an encoder in its decoder.

    Kernels read them in the memory of the request. Variables that the back end `last` reads, and small ones, are
    copied, and not returned.
    """
    pasts = {g.past for g in growing}
    return [
        value
        for value in program.inputs
        if is_variable(value) and value not in pasts and value not in program.returned
        if hint(value.nbytes) >= LEAST_IN_PLACE and _is_relocatable(program, value, None, owners, last)
    ]


def is_variable(value: Value) -> bool:
    """True for an input that is the value of a variable."""
    return value.origin is not None and value.origin.node.type == "ReadValue"


def readers(program: Program, growing: Sequence[Growing]) -> set[Step]:
    """Return the steps that read variables that grow, or views or concatenations of them."""
    steps: set[Step] = set()
    pending = [g.past for g in growing]
    while pending:
        for step in program.consumers(pending.pop()):
            if step not in steps:
                steps.add(step)
                pending += step.outputs if isinstance(step, ViewStep | ConcatStep) else []
    return steps


def request(requests: MemoryRequests, growing: Sequence[Growing], caller_inputs: Sequence[Value]) -> None:
    """Request the memory of variables that grow, and of others that are read in place."""
    requests.caller_inputs += caller_inputs
    for value in caller_inputs:
        requests.layouts.pop(value, None)
    for each in growing:
        requests.layouts.pop(each.join.output, None)
        requests.layouts[each.past] = each.layout
        requests.appending_concats.add(each.join)
