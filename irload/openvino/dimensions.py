"""Dimension and PartialShape: sizes of axes that may be known in part."""

from __future__ import annotations

from collections.abc import Iterator
from operator import index as whole
from typing import Any

from irload.core.shape import ANY, Dim
from irload.core.shape import Shape as Dims
from irload.errors import ShapeMismatch
from irload.openvino.errors import OpenVINOError
from irload.openvino.vectors import Shape

__all__ = ["Dimension", "PartialShape", "Symbol", "dims_of"]

UNBOUNDED = (1 << 63) - 1
"""The size that stands for "no upper bound" in maximal shapes."""


class Symbol:
    """Identity of a dimension: two dims with the same symbol have the same size. `Symbol()` is a new one."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return True


class Dimension:
    """The sizes of an axis: `Dimension(3)`, `Dimension(1, 8)`, `Dimension("2..")`, `Dimension()` for any size."""

    __slots__ = ("_dim", "_symbol")
    __hash__ = None

    def __init__(self, *sizes: Any) -> None:
        self._symbol: Symbol | None = None
        if sizes and isinstance(sizes[0], Dimension):
            self._dim: Dim = sizes[0]._dim  # noqa: SLF001
            self._symbol = sizes[0]._symbol  # noqa: SLF001
        elif len(sizes) == 1:
            self._dim = _parsed(sizes[0]) if isinstance(sizes[0], str) else _dim(whole(sizes[0]))
        elif len(sizes) == 2:
            low, high = map(whole, sizes)
            self._dim = Dim(max(low, 0), None if high < 0 or high == UNBOUNDED else high)
            if high >= 0 and high < low:
                raise OpenVINOError(f"a dimension of {low} to {high} has no size")
        else:
            self._dim = ANY

    @staticmethod
    def dynamic() -> Dimension:
        """A dimension of any size."""
        return Dimension()

    @property
    def is_static(self) -> bool:
        """True if one size is possible."""
        return self._dim.is_static

    @property
    def is_dynamic(self) -> bool:
        """True if several sizes are possible."""
        return not self._dim.is_static

    @property
    def min_length(self) -> int:
        """The smallest size."""
        return self._dim.lo

    @property
    def max_length(self) -> int:
        """The largest size, −1 if unbounded."""
        return -1 if self._dim.hi is None else self._dim.hi

    def get_length(self) -> int:
        """The size. Raises for a dynamic dimension."""
        if self.is_dynamic:
            raise OpenVINOError(f"cannot get the length of dynamic dimension {self}")
        return self._dim.lo

    __len__ = get_length

    def get_min_length(self) -> int:
        """`min_length`."""
        return self.min_length

    def get_max_length(self) -> int:
        """`max_length`."""
        return self.max_length

    def compatible(self, dim: Any) -> bool:
        """True if some size is possible in both."""
        return self._dim.meet(Dimension(dim)._dim) is not None  # noqa: SLF001

    def refines(self, dim: Any) -> bool:
        """True if every size of this dimension is one of the other."""
        return Dimension(dim)._dim.contains(self._dim)  # noqa: SLF001

    def relaxes(self, dim: Any) -> bool:
        """True if every size of the other dimension is one of this."""
        return self._dim.contains(Dimension(dim)._dim)  # noqa: SLF001

    def same_scheme(self, dim: Any) -> bool:
        """True if both are dynamic, or both are the same size."""
        other = Dimension(dim)
        return (self.is_dynamic and other.is_dynamic) or self._dim == other._dim

    def has_symbol(self) -> bool:
        """True if a symbol is set."""
        return self._symbol is not None

    def get_symbol(self) -> Symbol | None:
        """The symbol, None if there is none."""
        return self._symbol

    def set_symbol(self, symbol: Symbol) -> None:
        """Set the symbol, which marks dimensions of equal size."""
        self._symbol = symbol

    def to_string(self) -> str:
        """The text `3`, `?` or `1..8`."""
        return str(self)

    def __int__(self) -> int:
        return self.get_length()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Dimension):
            return self._dim == other._dim
        return self._dim == _dim(other) if isinstance(other, int) else NotImplemented

    def __copy__(self) -> Dimension:
        return Dimension(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> Dimension:
        return Dimension(self)

    def __str__(self) -> str:
        return str(self._dim)

    def __repr__(self) -> str:
        return f"<Dimension: {self}>"


def _dim(size: int) -> Dim:
    return ANY if size == -1 else Dim.of(size)


def _parsed(text: str) -> Dim:
    if not text.strip():
        return ANY
    low, range_, high = (part.strip() for part in text.partition(".."))
    for bound, part in (("min bound", low), ("max bound", high)) if range_ else ():
        if part and not part.isdigit():
            raise OpenVINOError(f'Cannot parse {bound}: "{part}"')
    try:
        dims = Dims.parse(text)
    except ShapeMismatch as error:
        raise OpenVINOError(f'Cannot parse dimension: "{text}"') from error
    if dims.rank != 1:
        raise OpenVINOError(f"'{text}' is not one dimension")
    return dims.dims[0]


def _parsed_shape(text: str) -> Dims:
    if text.strip().startswith("[") != text.strip().endswith("]"):
        raise OpenVINOError(f'Cannot get vector of dimensions! "{text}" is incorrect')
    try:
        return Dims.parse(text)
    except ShapeMismatch as error:
        items = text.strip().removeprefix("[").removesuffix("]").split(",")
        if not all(map(str.strip, items)):
            raise OpenVINOError(f'Cannot get vector of dimensions! "{text}" is incorrect') from error
        for item in items:
            _parsed(item)
        raise OpenVINOError(error.message) from error


def _dimension(item: Any) -> Dimension:
    """One dimension from an item of a sequence: a size, a pair of bounds, a text or a Dimension."""
    if isinstance(item, tuple | list):
        bounds: Any = item
        if len(bounds) != 2:
            raise TypeError(
                "Two elements are expected in tuple(lower, upper) for dynamic dimension, "
                f"but {len(bounds)} elements were given."
            )
        if not all(isinstance(bound, int) for bound in bounds):
            kinds = ", ".join(str(type(bound)) for bound in bounds)
            raise TypeError(f"Incorrect pair of types ({kinds}) for dynamic dimension, ints are expected.")
        return Dimension(*bounds)
    if isinstance(item, str | Dimension | int) or hasattr(item, "__index__"):
        return Dimension(item)
    raise TypeError(
        f"Incorrect type {type(item)} for dimension. Expected types are: int, str, openvino.Dimension, list/tuple with "
        "lower and upper values for dynamic dimension."
    )


class PartialShape:
    """A shape whose dims or rank may be unknown: from a sequence, a text such as `?,3,8..16`, or a Shape."""

    __slots__ = ("_dims",)
    __hash__ = None

    def __init__(self, shape: Any) -> None:
        self._dims: list[Dimension] | None
        if isinstance(shape, PartialShape):
            self._dims = None if shape._dims is None else list(map(Dimension, shape._dims))  # noqa: SLF001
        elif isinstance(shape, str):
            self._dims = PartialShape._from_dims(_parsed_shape(shape))._dims  # noqa: SLF001
        else:
            self._dims = [_dimension(item) for item in shape]

    @staticmethod
    def _from_dims(dims: Dims) -> PartialShape:
        shape = PartialShape(())
        shape._dims = None if dims.rank is None else [_wrapped(d) for d in dims]
        return shape

    @staticmethod
    def dynamic(rank: Any = None) -> PartialShape:
        """A shape of `rank` unknown dims, of unknown rank without one."""
        rank = Dimension(-1 if rank is None else rank)
        return PartialShape._from_dims(Dims.any(rank.get_length() if rank.is_static else None))

    @property
    def rank(self) -> Dimension:
        """The number of axes."""
        return Dimension(-1 if self._dims is None else len(self._dims))

    @property
    def is_static(self) -> bool:
        """True if the rank and every dim are known."""
        return self._dims is not None and all(d.is_static for d in self._dims)

    @property
    def is_dynamic(self) -> bool:
        """The opposite of `is_static`."""
        return not self.is_static

    @property
    def all_non_negative(self) -> bool:
        """True: no dim can be negative."""
        return True

    def _known(self) -> list[Dimension]:
        if self._dims is None:
            raise OpenVINOError("the rank of the shape is unknown")
        return self._dims

    def get_dimension(self, index: int) -> Dimension:
        """The dim of an axis. Raises for an axis that does not exist."""
        dims = self._known()
        if not -len(dims) <= index < len(dims):
            raise OpenVINOError(f"there is no axis {index} in shape {self}")
        return dims[index]

    def to_shape(self) -> Shape:
        """The static shape. Raises for a dynamic one."""
        if self.is_dynamic:
            raise OpenVINOError(f"to_shape was called on a dynamic shape, {self}")
        return Shape(d.min_length for d in self._known())

    get_shape = to_shape

    def get_min_shape(self) -> Shape:
        """The smallest size of each axis; empty for unknown rank."""
        return Shape(d.min_length for d in self._dims or ())

    def get_max_shape(self) -> Shape:
        """The largest size of each axis, 2⁶³ − 1 if unbounded; empty for unknown rank."""
        return Shape(UNBOUNDED if d.max_length < 0 else d.max_length for d in self._dims or ())

    def compatible(self, shape: Any) -> bool:
        """True if some shape is possible in both."""
        return dims_of(self).meet(dims_of(shape)) is not None

    def refines(self, shape: Any) -> bool:
        """True if the other shape allows every shape that this allows."""
        return dims_of(shape).contains(dims_of(self))

    def relaxes(self, shape: Any) -> bool:
        """True if this shape allows every shape that the other allows."""
        return dims_of(self).contains(dims_of(shape))

    def same_scheme(self, shape: Any) -> bool:
        """True if both ranks are unknown, or all pairs of dims are of the same scheme."""
        other = PartialShape(shape)
        if self._dims is None or other._dims is None:
            return self._dims is other._dims
        same_rank = len(self._dims) == len(other._dims)
        return same_rank and all(a.same_scheme(b) for a, b in zip(self._dims, other._dims, strict=True))

    def to_string(self) -> str:
        """The text `[?,3,8..16]`."""
        return str(self)

    def __len__(self) -> int:
        return len(self._known())

    def __iter__(self) -> Iterator[Dimension]:
        return iter(self._known())

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            return PartialShape(self._known()[index])
        return self.get_dimension(index)

    def __setitem__(self, index: int, dim: Any) -> None:
        self._known()[index] = _dimension(dim)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, list | tuple) and self.is_dynamic:
            raise TypeError(f"Cannot compare dynamic shape with {type(other)}")
        if isinstance(other, PartialShape | Shape | list | tuple):
            return dims_of(self) == dims_of(other)
        return NotImplemented

    def __copy__(self) -> PartialShape:
        return PartialShape(self)

    def __deepcopy__(self, memo: dict[int, Any]) -> PartialShape:
        return PartialShape(self)

    def __str__(self) -> str:
        return str(dims_of(self))

    def __repr__(self) -> str:
        return f"<PartialShape: {self}>"


def _wrapped(dim: Dim) -> Dimension:
    dimension = Dimension()
    dimension._dim = dim  # noqa: SLF001
    return dimension


def dims_of(shape: Any) -> Dims:
    """The dims of any form of a shape: PartialShape, Shape, sequence, text, or irload's Shape."""
    if isinstance(shape, Dims):
        return shape
    if isinstance(shape, Dimension):
        raise TypeError("a shape is a sequence of dimensions, found one Dimension")
    given = shape if isinstance(shape, PartialShape) else PartialShape(shape)
    dims = given._dims  # noqa: SLF001
    try:
        return Dims.unranked() if dims is None else Dims(*(d._dim for d in dims))  # noqa: SLF001
    except ShapeMismatch as error:
        raise OpenVINOError(error.message) from error
