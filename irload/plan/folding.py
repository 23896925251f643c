"""Constant folding: replaces a node with constant inputs by its result, which is computed once.

For example, weights are decompressed when a model is compiled instead of at each run.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np

from irload.core.op import Op, evaluate, is_builtin
from irload.core.shape import shape_of
from irload.core.size import has_sizes, is_size
from irload.core.tensor import Array, TensorType
from irload.errors import ExecutionError
from irload.graph import Node, Output
from irload.plan.ir.compressed import compressed
from irload.plan.ir.constant import DEEPEST, SMALL, Constant, Recipe
from irload.plan.wide import SHORT, is_short, takes_its_own_types, wide_type, widened_array
from irload.safety.limits import Deadline, Limits

LARGE = 1 << 26
GROWTH = 8
"""Results of up to LARGE bytes are folded; larger ones if they have at most GROWTH times the bytes of their inputs.

A factor of 8 is enough for 4-bit weights, which are decompressed to f32.
"""

CERTAIN = frozenset({"Convert", "Subtract", "Multiply", "Reshape", "Transpose", "Unsqueeze", "Squeeze"})
"""Operations that decompress weights.

They cannot fail once shape inference has succeeded, so their results are computed on first use. The compressed and
decompressed weights are thus not all in memory at the same time.
"""


class Folding:
    """The constants of one model. Constants that depend only on the file are shared by all plans."""

    def __init__(self) -> None:
        self._kept: dict[Output, Constant] = {}
        self.merged: dict[Node, Sequence[Node]] = {}
        """The nodes that replace a group of nodes in schedules, by the last node of the group."""

    def fold(
        self, nodes: Sequence[Node], results: Iterable[Output], types: Mapping[Output, TensorType], limits: Limits
    ) -> tuple[dict[Output, Constant], set[Node]]:
        """Return the constants that results and remaining nodes read, and the folded nodes, which need not run.

        Constants that only other constants read are released immediately, so that weights are not in memory twice.
        Constants beyond the memory limits are computed at run time. Raises LimitExceeded if folding takes too long.
        """
        deadline = Deadline(limits)
        room = None if limits.memory is None else limits.memory - sum(c.nbytes for c in self._kept.values() if c.held)
        waiting = Counter(i for node in nodes for i in node.inputs)
        waiting.update(results)
        known: dict[Output, Constant] = {}
        gone: set[Node] = set()
        for node in nodes:
            deadline.check()
            constants = self._results(node, known, types, room) or _inferred(node, types)
            if constants is None:
                continue
            gone.add(node)
            if room is not None:
                room -= sum(c.nbytes for c in constants if compressed(c) is None)  # compressed weights stay compressed
            known.update(zip(node.outputs, constants, strict=True))
            for source in node.inputs:
                waiting[source] -= 1
                if not waiting[source] and source in known:
                    known.pop(source).release()
        return known | self._stored(nodes, waiting), gone

    def _results(
        self, node: Node, known: Mapping[Output, Constant], types: Mapping[Output, TensorType], room: int | None
    ) -> tuple[Constant, ...] | None:
        """Return the results of a node, or None if they are unknown or would be too large."""
        if not all(o in types for o in node.outputs):
            return None  # the file lists a port that the operation does not have
        if not node.outputs or node.type == "Const":
            return None
        computed = [i for i in node.inputs if i in known]
        rounded = any(is_short(types[o]) for o in (*node.outputs, *computed))  # inference rounds, plans do not
        if not rounded and (inferred := _inferred(node, types)):
            self._add_recipe(node, inferred, known)
            return inferred
        if all(o in self._kept for o in node.outputs):
            return tuple(self._kept[o] for o in node.outputs)
        if not node.op.folds or node.op.signature.compute_context:
            return None
        if not all(i in known or i.node.type == "Const" for i in node.inputs):
            return None
        if takes_its_own_types(node) and any(is_short(types[o]) for o in (*node.inputs, *node.outputs)):
            return None  # the operation requires 16-bit inputs, and constants are f32 here
        is_static = all(types[o].is_static for o in node.outputs)
        size = sum(types[o].nbytes or 0 for o in node.outputs) if is_static else 0
        if is_size(size):
            return None  # the result differs between shapes
        inputs = [known[i] if i in known else self.file(i.node) for i in node.inputs]
        most = math.inf if room is None else room
        if inputs:
            most = min(most, max(LARGE, GROWTH * sum(i.nbytes for i in inputs)))
        if size > most:
            return None
        if any(i.dtype == object and has_sizes(i.array) for i in inputs):
            return None  # the result differs between shapes
        after = [wide_type(types[o]) for o in node.outputs]
        if size > SMALL and node.type in CERTAIN and is_builtin(node.op) and max(i.depth for i in inputs) < DEEPEST:
            return self._keep(node, _folded(node.op, inputs, after, [None] * len(after)))
        try:
            results = _evaluated(node.op, inputs, after)
        except ExecutionError:
            return None  # it fails again at run time, with its location in the message
        if len(results) != len(node.outputs):
            return None  # the file lists fewer ports than the operation has
        if not is_static:  # the shapes depend on values, as for the strings of a vocabulary
            after = [TensorType(t.element, shape_of(r.shape)) for t, r in zip(after, results, strict=True)]
            if sum(r.nbytes for r in results) > most:
                return None
        return self._keep(node, _folded(node.op, inputs, after, results))

    def _add_recipe(self, node: Node, inferred: tuple[Constant, ...], known: Mapping[Output, Constant]) -> None:
        """Set the recipe of an inferred constant if its operation decompresses or quantizes weights."""
        if len(inferred) == 1 and node.type in (*CERTAIN, "FakeQuantize") and is_builtin(node.op):
            inputs = [self.file(i.node) if i.node.type == "Const" else known.get(i) for i in node.inputs]
            if inputs and None not in inputs:
                inferred[0].recipe = Recipe(node.op, tuple(i for i in inputs if i is not None))

    def _keep(self, node: Node, constants: tuple[Constant, ...]) -> tuple[Constant, ...]:
        """Cache constants that depend only on the file, so that other plans share them."""
        if all(i in self._kept or i.node.type == "Const" for i in node.inputs):
            self._kept.update(zip(node.outputs, constants, strict=True))
        return constants

    def _stored(self, nodes: Sequence[Node], wanted: Mapping[Output, int]) -> dict[Output, Constant]:
        """Return the constants of the file whose values are used."""
        return {n.outputs[0]: self.file(n) for n in nodes if n.type == "Const" and wanted.get(n.outputs[0])}

    def file(self, node: Node) -> Constant:
        """Return a constant of the file, which is read on first use."""
        output = node.outputs[0]
        if output not in self._kept:
            self._kept[output] = stored(node)
        return self._kept[output]

    @property
    def outputs(self) -> Mapping[Constant, Output]:
        """The output of each constant that depends only on the file."""
        return {constant: output for output, constant in self._kept.items()}

    def repeated(self, recipe: Recipe, array: Array | None, output: Output | None) -> Constant:
        """Return the constant that a recipe computes. If it is an `output` of the graph, all plans share it.

        `array`: the values, None if they are computed on first use.
        """
        constant = None if output is None else self._kept.get(output)
        if constant is None:
            assert recipe.type is not None
            (constant,) = _folded(recipe.op, recipe.inputs, [recipe.type], [array])
            if output is not None:
                self._kept[output] = constant
        return constant


def _inferred(node: Node, types: Mapping[Output, TensorType]) -> tuple[Constant, ...] | None:
    """Return the values computed by inference, such as shapes; 16-bit floats as f32."""
    values = [types[o].value for o in node.outputs if o in types]
    known = [Constant.of(widened_array(v)) for v in values if v is not None]
    return tuple(known) if known and len(known) == len(node.outputs) and node.type != "Const" else None


def stored(node: Node) -> Constant:
    """Return the value of a Const."""
    tensor, attributes = node.outputs[0].type, node.op.attributes
    where = attributes["offset"], attributes["size"]
    return of_file(lambda: cast(Array, node.op.compute()), attributes["data"], tensor, where if where[1] else None)


def of_file(make: Callable[[], Array], data: Any, tensor: TensorType, byte_range: object) -> Constant:
    """Return a constant of a file. `data` has a method `codes` if several elements share a byte."""
    codes = getattr(data, "codes", None)
    dtype = tensor.element.dtype
    return Constant(make, tensor.shape.static, dtype, byte_range=byte_range, element=tensor.element, codes=codes)


def _evaluated(op: Op, inputs: Sequence[Constant], types: Sequence[TensorType]) -> list[Array]:
    """Return the results of an operation on constants; 16-bit floats as f32."""
    results = evaluate(op, [widened_array(i.array) for i in inputs], types)
    return [np.asarray(r, t.element.dtype) if r.dtype in SHORT else r for r, t in zip(results, types, strict=False)]


def _folded(
    op: Op, inputs: Sequence[Constant], types: Sequence[TensorType], results: Sequence[Array | None]
) -> tuple[Constant, ...]:
    """Return the constants that an operation computes. Elements of `results` are None if computed on first use."""
    depth = 1 + max((i.depth for i in inputs), default=0)

    def make(k: int) -> Array:
        return _evaluated(op, inputs, types)[k]

    constants: list[Constant] = []
    for k, (tensor, array) in enumerate(zip(types, results, strict=True)):
        if array is not None:
            array.flags.writeable = False
        recipe = Recipe(op, tuple(inputs), tensor.without_value()) if len(types) == 1 else None
        shape, dtype = tensor.shape.static, tensor.element.dtype
        constants.append(Constant(partial(make, k), shape, dtype, array, depth, recipe=recipe))
    return tuple(constants)
