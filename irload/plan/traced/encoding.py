"""Encodes objects of traced plans as JSON and arrays: sizes, constants, values, steps, and the records in their fields.

Each object of a table is written once, after all objects that it refers to, so that `decoding` reads them in order.
The format cannot name code to load: classes are from a fixed list, and operations from OpenVINO's opsets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields
from typing import Any

import numpy as np

from irload.core.element import ElementType
from irload.core.op import Op, is_builtin
from irload.core.shape import Dim, Shape
from irload.core.size import has_sizes, is_size
from irload.core.tensor import Array, TensorType
from irload.errors import IRError
from irload.graph import Node, Output
from irload.ops.image.resize import AxisTaps, Sampling
from irload.ops.image.taps import Taps
from irload.ops.registry import resolve
from irload.plan.backends.compiled import NotStorable
from irload.plan.ir import steps
from irload.plan.ir.constant import SMALL, WIDENED, Constant
from irload.plan.ir.derivations import (
    BinaryFilters,
    ColumnsAsChannels,
    KeptChannels,
    KeptTaps,
    Reshaped,
)
from irload.plan.ir.expression import Expression, Instruction
from irload.plan.ir.program import Step, Value
from irload.plan.ir.steps.rows import SizedTaps
from irload.plan.lowering.checked import Checked
from irload.plan.memory.layout import Layout, RowCodes
from irload.plan.passes.subnormals import without_subnormals
from irload.read.constants import StoredConstant

DERIVATIONS = (BinaryFilters, ColumnsAsChannels, KeptChannels, KeptTaps, Reshaped)
"""The functions of weights for which plans store the function and its parameters instead of its result."""
RECORDS: Mapping[str, type] = {
    cls.__name__: cls
    for cls in (
        *DERIVATIONS, AxisTaps, Expression, Instruction, Layout, RowCodes, Sampling, SizedTaps, Taps, steps.Integers
    )
}  # fmt: skip
"""The dataclasses of objects in fields of steps, by name. Their instances are encoded field by field."""
STEPS: Mapping[str, type[Step]] = {
    name: cls for name, cls in vars(steps).items() if isinstance(cls, type) and issubclass(cls, Step)
}
"""The classes of steps."""
PLAIN = frozenset((bool, float, int, str, type(None)))
"""Types that JSON preserves."""
ALIGNMENT = 64
"""Byte alignment of arrays."""
TABLES = ("sizes", "constants", "values", "steps")
"""The tables, in the order in which they are decoded."""


def described_node(node: Node) -> Sequence[Any]:
    """Return the properties of a layer that error messages contain, and the element types of its outputs."""
    return [node.id, node.name, node.type, node.version, node.line, [o.type.element.name for o in node.outputs]]


class PlanEncoder:
    """Converts objects to JSON. The first element of a list names the type of the object.

    `nodes`: the layers of the model, to which objects refer by number; `outputs`: the output of each constant that
    depends on the file alone; `unknown`: the constants that are computed when a shape is bound; `largest`: the maximum
    bytes of `arrays`. Raises NotStorable for objects that cannot be encoded.
    """

    def __init__(
        self,
        nodes: Sequence[Node],
        outputs: Mapping[Constant, Output],
        unknown: AbstractSet[Constant],
        largest: int,
    ) -> None:
        self._nodes = {node: k for k, node in enumerate(nodes)}
        self._outputs = outputs
        self._unknown = unknown
        self._largest = largest
        self.tables: Mapping[str, list[Any]] = {name: [] for name in TABLES}
        """The encoded objects of each table."""
        self.arrays: list[Array] = []
        """The arrays, contiguous."""
        self.nbytes = 0
        """The bytes of all arrays, each rounded up to `ALIGNMENT`."""
        self.nodes: dict[int, Sequence[Any]] = {}
        """The layers to which objects refer, by number."""
        self._numbers: dict[Any, int] = {}
        self._kinds: Mapping[type, Callable[[Any], Any]] = {
            tuple: lambda item: ["tuple", *map(self, item)],
            list: lambda item: ["list", *map(self, item)],
            slice: lambda item: ["slice", *map(self, (item.start, item.stop, item.step))],
            Dim: lambda item: self(item.lo) if item.is_static else ["dim", item.lo, item.hi],
            Shape: lambda item: ["unranked"] if item.rank is None else ["shape", *map(self, item.dims)],
            TensorType: lambda item: ["tensor", item.element.name, self(item.shape)],
            ElementType: lambda item: ["element", item.name],
            Value: self.value,
            Constant: self.constant,
            Node: self._node,
            Output: lambda item: [*self._node(item.node), item.index],
            np.ndarray: self._array,
            bytes: lambda item: ["bytes", self._array(np.frombuffer(item, np.uint8))],
        }

    def __call__(self, item: Any) -> Any:
        kind = type(item)
        if kind in PLAIN:
            return item
        if is_size(item):
            return ["size", self._numbered("sizes", item.key, lambda: item.key)]
        encode = self._kinds.get(kind)
        if encode is not None:
            return encode(item)
        if isinstance(item, Step):
            return self.step(item)
        if isinstance(item, np.dtype):
            return ["dtype", item.name]
        if isinstance(item, np.generic):
            return ["number", item.dtype.name, item.item()]
        if isinstance(item, Op):
            return self._operation(item)
        if RECORDS.get(kind.__name__) is kind:
            return ["record", kind.__name__, *(self(getattr(item, f.name)) for f in fields(item))]
        raise NotStorable(f"an object of {kind.__name__}")

    def step(self, step: Step) -> Any:
        """Return a reference to a step: "step" and its number in the table of steps."""
        return ["step", self._numbered("steps", step, lambda: self._fields(step))]

    def value(self, value: Value) -> Any:
        """Return a reference to a value: "value" and its number in the table of values."""
        return ["value", self._numbered("values", value, lambda: [self(getattr(value, f.name)) for f in fields(value)])]

    def constant(self, constant: Constant) -> Any:
        """Return a reference to a constant: "constant" and its number in the table of constants."""
        return ["constant", self._numbered("constants", constant, lambda: self._described(constant))]

    def _numbered(self, table: str, key: Any, describe: Callable[[], Any]) -> int:
        number = self._numbers.get(key)
        if number is None:
            encoded = describe()  # before taking a number: it may append other objects to the table
            number = self._numbers[key] = len(self.tables[table])
            self.tables[table].append(encoded)
        return number

    def _fields(self, step: Step) -> list[Any]:
        name = type(step).__name__
        if STEPS.get(name) is not type(step):
            raise NotStorable(f"a step of {name}")
        return [name, *(self(getattr(step, f.name)) for f in fields(step))]

    def _node(self, node: Node) -> list[Any]:
        number = self._nodes.get(node)
        if number is None:
            raise NotStorable("a layer of a body")
        if number not in self.nodes:
            self.nodes[number] = described_node(node)
        return ["node", number]

    def _operation(self, op: Op) -> list[Any]:
        if isinstance(op, Checked):
            return ["check", op.type]
        try:
            cls, _ = resolve(op.type, op.opset)
        except IRError:
            raise NotStorable(f"the operation {op.type}") from None
        if cls is not type(op) or not is_builtin(op) or op.supplied:
            raise NotStorable(f"the operation {op.type}")
        return ["op", op.type, op.opset, *(self(value) for value in op.attributes.values())]

    def _described(self, constant: Constant) -> list[Any]:
        shape, dtype = self(constant.shape), self(constant.dtype)
        output = self._outputs.get(constant)
        if output is not None and output.node.type == "Const":
            return ["file", self(output.node), *_stored_range(output.node)]
        if constant in self._unknown:
            return ["unknown", shape, dtype]
        if constant.derivation is not None:
            parent, key = constant.derivation
            if key is WIDENED or key is without_subnormals:
                return ["widened" if key is WIDENED else "flushed", self(parent)]
            if type(key) in DERIVATIONS:
                return ["derived", self(key), self(parent)]
        recipe = constant.recipe
        operation = [] if recipe is None else [self(recipe.op), self(recipe.inputs)]
        if recipe is None or recipe.type is None:
            return ["array", self(constant.array), *operation]
        array = self(constant.array) if constant.held and constant.nbytes <= SMALL else None
        return ["folded", *operation, self(recipe.type), array, None if output is None else self(output)]

    def _array(self, array: Array) -> list[Any]:
        if has_sizes(array):
            return ["sizes", self(array.shape), *map(self, array.flat)]
        if array.dtype.hasobject:
            raise NotStorable("an array of objects")
        start = self.nbytes
        self.nbytes += array.nbytes + -array.nbytes % ALIGNMENT
        if self.nbytes > self._largest:
            raise NotStorable("constants are too large")
        self.arrays.append(np.ascontiguousarray(array))
        return ["array", start, array.dtype.name, *array.shape]


def _stored_range(node: Node) -> Sequence[Any]:
    """Return the element type, shape, offset and size in bytes of a Const. Raises NotStorable."""
    data, tensor = node.op.attributes["data"], node.outputs[0].type
    if not isinstance(data, StoredConstant) or data.shape != tensor.shape.static or data.element is not tensor.element:
        raise NotStorable("a constant that is not a range of the file")
    return [data.element.name, data.shape, data.offset, data.size]
