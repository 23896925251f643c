"""Locates the origin of NaN and infinities: the first layers that output them, and constants that contain them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

import ml_dtypes
import numpy as np

from irload.core.element import ElementType, dynamic, element_of_dtype
from irload.core.tensor import Array
from irload.errors import Where
from irload.graph import Node, UnknownOp
from irload.runtime.observation import Visit, labels
from irload.wording import printable

if TYPE_CHECKING:
    from irload.runtime.compiled_model import CompiledModel

__all__ = ["Finiteness", "NonFinite", "ValueRange", "check_finite"]


@dataclass(frozen=True, slots=True)
class ValueRange:
    """The range of a tensor: the least and greatest finite value (None if there is none), and counts of other values.

    `subnormal` counts nonzero values below the least normal number of the type.
    """

    type: str
    shape: tuple[int, ...]
    min: float | None
    max: float | None
    nan: int
    infinite: int
    subnormal: int = 0

    @property
    def is_finite(self) -> bool:
        """True if there is neither NaN nor infinity."""
        return not self.nan and not self.infinite

    def __str__(self) -> str:
        parts = [f"{self.type}[{','.join(map(str, self.shape))}]"]
        parts += [] if self.min is None else [f"{self.min:.6g} … {self.max:.6g}"]
        counts = (("NaN", self.nan), ("infinite", self.infinite), ("subnormal", self.subnormal))
        return ", ".join(parts + [f"{count} {kind}" for kind, count in counts if count])


@dataclass(frozen=True, slots=True)
class NonFinite:
    """A layer that outputs non-finite or subnormal values, or a constant that contains them.

    `kind`: `nan`, `infinity`, `overflow` (an infinity of a type narrower than f32 from finite inputs) or `subnormal`;
    the layer is the first that outputs this kind. For a constant, the kind that it contains. `inputs` are empty for a
    constant.
    """

    kind: str
    name: str
    where: Where
    attributes: dict[str, str]
    output: ValueRange
    inputs: tuple[ValueRange, ...] = ()

    @property
    def made_here(self) -> bool:
        """True if all inputs of the layer are finite, so that the layer itself creates the values."""
        return all(r.is_finite for r in self.inputs)

    def __str__(self) -> str:
        return printable(f"{self.kind}: {self.name} ({self.where.layer_type}) gives {self.output}")


@dataclass(slots=True)
class Finiteness:
    """The result of `check_finite`: the first of the `layers` of each kind, in order, and all `constants`."""

    layers: list[NonFinite] = field(default_factory=list[NonFinite])
    constants: list[NonFinite] = field(default_factory=list[NonFinite])
    visited: int = 0
    """Number of layer executions; a layer in a loop counts once per iteration."""

    @property
    def first(self) -> NonFinite | None:
        """The first layer with NaN or an infinity (or, if enabled, subnormal numbers) in its output."""
        return self.layers[0] if self.layers else None

    @property
    def passed(self) -> bool:
        """True if there are no findings."""
        return not self.layers and not self.constants


def check_finite(model: CompiledModel, inputs: Any = None, *, subnormals: bool = False) -> Finiteness:
    """Return the first layer whose output contains NaN, the first with an infinity, and the constants with either.

    Every layer runs by its `compute`, in bodies too, in every iteration. `inputs` as for a call; `subnormals=True` also
    searches for subnormal numbers. An infinity may be intended (masks contain −inf), so the search for NaN continues
    after it. Raises the errors of a call.
    """
    from irload.runtime.compiled_model import CompiledModel

    if not isinstance(model, CompiledModel):
        raise TypeError(f"expected a CompiledModel, found {type(model).__name__}; call irload.compile_model first")
    finiteness = Finiteness()
    file = model.model.file
    names = labels(model.model)
    kinds: set[str] = set()

    def observe(visit: Visit) -> None:
        finiteness.visited += 1
        for name, tensor, array in visit.named():
            kind = _kind(array, tensor.element, subnormals)
            if kind is None or kind in kinds:
                continue
            kinds.add(kind)
            before = [i.type.element for i in visit.node.inputs]
            ranges = tuple(_range(a, e) for a, e in zip(visit.inputs, before, strict=False))
            if kind == "infinity" and tensor.element.bits < 32 and all(r.is_finite for r in ranges):
                kind = "overflow"
            finiteness.layers.append(_entry(kind, name, visit.node, file, _range(array, tensor.element), ranges))

    for graph in model.model.walk():
        for node in graph.nodes:
            if node.type == "Const" and node.reachable and not isinstance(node.op, UnknownOp):
                element = node.outputs[0].type.element
                array = cast(Array, node.op.compute()) if element.is_float else None
                kind = None if array is None else _kind(array, element, subnormals)
                if array is not None and kind is not None:
                    finiteness.constants.append(_entry(kind, names[node], node, file, _range(array, element)))
    model.observe(inputs, observe)
    return finiteness


def _kind(array: Array, element: ElementType, subnormals: bool) -> str | None:
    """Return the kind of an array's values: NaN before infinity before subnormal numbers."""
    if not _is_float(array) or not array.size:
        return None
    wide = _wide(array)
    if not np.isfinite(wide).all():
        return "nan" if np.isnan(wide).any() else "infinity"
    return "subnormal" if subnormals and _subnormal(wide, element) else None


def _range(array: Array, element: ElementType) -> ValueRange:
    element = element_of_dtype(array.dtype) if element is dynamic else element
    if array.dtype == object:
        return ValueRange(element.name, array.shape, None, None, 0, 0)
    if not _is_float(array):
        least, most = (float(array.min()), float(array.max())) if array.size else (None, None)
        return ValueRange(element.name, array.shape, least, most, 0, 0)
    wide = _wide(array)
    finite = np.isfinite(wide)
    nan = int(np.isnan(wide).sum())
    values = wide if finite.all() else wide[finite]
    least, most = (float(values.min()), float(values.max())) if values.size else (None, None)
    infinite = int(wide.size - finite.sum()) - nan
    return ValueRange(element.name, array.shape, least, most, nan, infinite, _subnormal(wide, element))


def _subnormal(wide: Array, element: ElementType) -> int:
    if not element.is_float:
        return 0
    least = float(ml_dtypes.finfo(element.dtype).smallest_normal)
    return int(((wide != 0) & (np.abs(wide) < least)).sum())


def _is_float(array: Array) -> bool:
    return array.dtype.kind in "fV"  # NumPy does not treat the narrow float types as floating


def _wide(array: Array) -> Array:
    """Return the array, converted to f32 if narrower, for NumPy's functions."""
    return array.astype(np.float32) if array.dtype.itemsize < 4 else array


def _entry(
    kind: str, name: str, node: Node, file: str | None, output: ValueRange, inputs: tuple[ValueRange, ...] = ()
) -> NonFinite:
    op = node.op
    given = {name: op.attributes[name] for name, declaration in op.declared.items() if not declaration.supplied}
    attributes = {name: op.declared[name].write(v)[:200] for name, v in given.items() if v is not None}
    return NonFinite(kind, name, node.where(file), attributes, output, inputs)
