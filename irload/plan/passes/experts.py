"""Compute only the experts that a router has chosen for each row, instead of all experts for all rows.

Exporters repeat the rows for all experts, multiply them by weights [experts, …], then by the weights of the router,
which are zeros but for k experts of each row, and add up the results of all experts. Here each row is copied for its k
experts, sorted by expert, so that each expert multiplies only its rows.

An infinite result of an expert that is not chosen would be NaN after the multiplication by zero. It is not computed
here, nor by OpenVINO's GatherMatmul.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np

from irload.core import element as et
from irload.core.element import ElementType
from irload.core.op import Op
from irload.core.shape import Shape
from irload.core.size import alike, is_size
from irload.core.tensor import TensorType
from irload.graph import Node
from irload.ops.comparison.compare import Equal
from irload.ops.condition.select import Select
from irload.plan.ir import steps as ir
from irload.plan.ir.expert_sums import sum_experts
from irload.plan.ir.expression import IDENTITY, MULTIPLY
from irload.plan.ir.program import Producers, Program, Step, Value
from irload.plan.ir.reshaping import reshaped
from irload.record import record

I32 = np.dtype(np.int32)


def route_rows(program: Program) -> None:
    """Replace each sum over all experts by the sum over the chosen ones."""
    producers = program.producers()
    program.rewrite(ir.ReduceStep, lambda step: _routed(step, producers))


@record(eq=False)
class _Router:
    """The experts `chosen` [rows, k] for each row, and their `weights` [rows, k]. `origin`: the nodes of the router.

    `differ`: True if the experts of a row differ. Of equal ones, only the weight of the last counts.
    """

    chosen: Value
    weights: Value
    experts: int
    differ: bool
    origin: tuple[Node, ...]

    @property
    def rows(self) -> int:
        return self.chosen.shape[0]


def _routed(total: ir.ReduceStep, producers: Producers) -> Sequence[Step] | None:
    """Return the steps that replace a sum over experts; None unless its terms have the weights of a router."""
    product = producers.get(total.inputs[0])
    if (total.kind, total.axes) != ("sum", (0,)):
        return None
    if not isinstance(product, ir.ElementwiseStep) or product.expression != MULTIPLY:
        return None
    for results, weights in (product.inputs, product.inputs[::-1]):
        router = _router(weights, producers) if len(weights.shape) == len(results.shape) else None
        if router is not None and _has_rows(results, router) and alike(weights.shape[-1], 1):
            rows = _Rows(router, producers)
            sorted_results = rows.of(results)
            if sorted_results is not None and rows.multiplies:
                return rows.summed(sorted_results, total)
    return None


def _router(weights: Value, producers: Producers) -> _Router | None:
    """Return the router that computes weights [experts, rows…, 1]; None for any other value."""
    experts = weights.shape[0]
    while isinstance(step := producers.get(weights), ir.ReshapeStep) and alike(step.inputs[0].shape[0], experts):
        weights = step.inputs[0]
    if not isinstance(step, ir.TransposeStep) or step.order != (1, 0):
        return None
    scatter = producers.get(step.inputs[0])
    if not isinstance(scatter, ir.ScatterStep) or scatter.axis != 1:
        return None
    zeros, chosen, updates = scatter.inputs
    k, differ = chosen.shape[1], isinstance(producers.get(chosen), ir.TopKStep)
    if is_size(k) or is_size(experts) or 2 * k > experts or not _are_zeros(zeros, producers):
        return None
    return _Router(chosen, updates, experts, differ, scatter.origin)


def _are_zeros(value: Value, producers: Producers) -> bool:
    """True for zeros, which a Broadcast may have repeated."""
    step = producers.get(value)
    constant = (step.inputs[0] if isinstance(step, ir.BroadcastStep) else value).constant
    return constant is not None and not constant.any()


def _has_rows(value: Value, router: _Router) -> bool:
    """True for a shape [experts, rows…, columns]."""
    experts, *rows, _ = value.shape
    return alike(experts, router.experts) and alike(prod(rows), router.rows)


class _Rows:
    """Builds the steps that compute rows [pairs, columns], sorted by expert, of values [experts, rows…, columns].

    `multiplies`: True if a step multiplies by the weights of experts.
    """

    def __init__(self, router: _Router, producers: Producers) -> None:
        self.multiplies = False
        self._router = router
        self._producers = producers
        self._known: dict[Value, Value | None] = {}
        self._copies: dict[tuple[Value, Value], Value] = {}
        chosen = router.chosen
        shapes = (chosen.size,), (chosen.size,), (router.experts,), chosen.shape
        self._row, self._expert, self._counts, self._positions = outputs = [Value(shape, I32) for shape in shapes]
        self._steps: list[Step] = [ir.ExpertOrderStep([chosen], list(outputs), origin=router.origin)]

    def of(self, value: Value) -> Value | None:
        """Return the rows of a value; None if it is not computed row by row."""
        if value not in self._known:
            self._known[value] = self._computed(value, self._producers.get(value))
        return self._known[value]

    def summed(self, results: Value, total: ir.ReduceStep) -> Sequence[Step]:
        """Return all steps; the last ones add up the sorted results of each row, times their weights."""
        weights = self._router.weights if self._router.differ else self._last_weights()
        for step in sum_experts(results, self._positions, weights, total.output):
            self._added(step, total.origin)
        return self._steps

    def _last_weights(self) -> Value:
        """Return the weights of the router, but 0 for an expert that a later column repeats."""
        chosen, (rows, k) = self._router.chosen, self._router.chosen.shape
        experts, weights = ([self._column(v, at) for at in range(k)] for v in (chosen, self._router.weights))
        zero = Value.of(np.zeros((), np.float32))
        for at in range(k - 1):
            for later in experts[at + 1 :]:
                repeats = self._operation(Equal(), et.boolean, [experts[at], later])
                weights[at] = self._operation(Select(), et.f32, [repeats, zero, weights[at]])
        return self._added(ir.ConcatStep(weights, [Value((rows, k), zero.dtype)], axis=1), self._router.origin)

    def _column(self, value: Value, at: int) -> Value:
        column = Value((self._router.rows, 1), value.dtype)
        part = ir.SliceStep([value], [column], index=(slice(None), slice(at, at + 1)))
        return self._added(part, self._router.origin)

    def _operation(self, op: Op, element: ElementType, columns: list[Value]) -> Value:
        shape = self._router.rows, 1
        types = (TensorType(element, Shape(*shape)),)
        step = ir.ComputeStep(columns, [Value(shape, element.dtype)], op=op, types=types)
        return self._added(step, self._router.origin)

    def _computed(self, value: Value, step: Step | None) -> Value | None:
        if len(value.shape) < 3 or not _has_rows(value, self._router):
            return None
        if isinstance(step, ir.MatMulStep):
            return self._product(step)
        if isinstance(step, ir.ElementwiseStep):
            return self._elementwise(step)
        if isinstance(step, ir.SliceStep):
            *outer, last = step.index
            whole = len(step.index) == len(value.shape) and all(part == slice(None) for part in outer)
            source = self.of(step.inputs[0]) if whole else None
            if source is None:
                return None
            return self._added(ir.SliceStep([source], [self._like(value)], index=(slice(None), last)), step.origin)
        if isinstance(step, ir.ReshapeStep) and alike(step.inputs[0].shape[-1], value.shape[-1]):
            reshaped = self.of(step.inputs[0])
            if reshaped is not None:
                return reshaped
        return self._repeated(value)

    def _product(self, step: ir.MatMulStep) -> Value | None:
        data, weights = step.inputs[:2]
        experts = self._router.experts
        if len(weights.shape) != 3 or not weights.is_constant or weights.shape[0] != experts or step.transpose_a:
            return None
        if step.epilogue != IDENTITY or step.integers is not None:
            return None
        rows = self.of(data) if _has_rows(data, self._router) else self._gathered(data, self._row, step)
        if rows is None:
            return None
        self.multiplies = True
        inputs = [rows, self._counts, weights]
        product = ir.ExpertMatMulStep(inputs, [self._like(step.output)], transpose=step.transpose_b)
        return self._added(product, step.origin)

    def _elementwise(self, step: ir.ElementwiseStep) -> Value | None:
        if len(step.outputs) != 1:
            return None
        operands = [self._operand(value, step) for value in step.inputs]
        inputs = [value for value in operands if value is not None]
        if len(inputs) < len(operands):
            return None
        mapped = ir.ElementwiseStep(inputs, [self._like(step.output)], expression=step.expression)
        return self._added(mapped, step.origin)

    def _operand(self, value: Value, step: ir.ElementwiseStep) -> Value | None:
        """Return the rows of an operand of a step, which may broadcast along rows, or along rows and experts."""
        rank = len(step.output.shape)
        sorted_rows = self.of(value) if len(value.shape) == rank else None
        if sorted_rows is not None:
            return sorted_rows
        experts, *rows, columns = (*(1,) * (rank - len(value.shape)), *value.shape)
        if not all(alike(size, 1) for size in rows):
            return None
        if alike(experts, 1):
            return self._reshaped(value, (1, columns))
        return self._gathered(value, self._expert, step)

    def _repeated(self, value: Value) -> Value | None:
        """Return the rows of a value that consists of the same rows for each expert."""
        columns = value.shape[-1]
        while isinstance(step := self._producers.get(value), ir.ReshapeStep):
            value = step.inputs[0]
        if not isinstance(step, ir.BroadcastStep):
            return None
        (source,) = step.inputs
        repeats = len(source.shape) == len(value.shape) and all(map(alike, source.shape[1:], value.shape[1:]))
        if not repeats or not alike(source.shape[0], 1) or not alike(source.shape[-1], columns):
            return None
        return self._gathered(source, self._row, step)

    def _gathered(self, source: Value, indices: Value, reader: Step) -> Value | None:
        """Return the rows of a value [rows…, columns], or of a value [experts, 1…, columns], for all pairs."""
        count, columns = (self._router.rows if indices is self._row else self._router.experts), source.shape[-1]
        if not alike(prod(source.shape[:-1]), count):
            return None
        if (source, indices) not in self._copies:
            table, rows = self._reshaped(source, (count, columns)), Value((indices.size, columns), source.dtype)
            self._copies[source, indices] = self._added(ir.GatherStep([table, indices], [rows], axis=0), reader.origin)
        return self._copies[source, indices]

    def _reshaped(self, value: Value, shape: tuple[int, ...]) -> Value:
        return reshaped(value, shape, self._steps, self._router.origin)

    def _like(self, value: Value) -> Value:
        """Return a new value for the rows of another."""
        return value.like((self._row.size, value.shape[-1]))

    def _added(self, step: Step, origin: tuple[Node, ...]) -> Value:
        step.origin = origin
        self._steps.append(step)
        return step.output
