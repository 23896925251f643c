"""Dim (an interval of sizes) and Shape (a tuple of dims, or unranked): partial shapes and their algebra.

Dims behave as OpenVINO's Dimension: a static dim is the interval n..n, `?` is 0..∞, arithmetic preserves bounds.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache, reduce
from math import prod
from typing import overload

from irload.core.size import alike, is_size, number
from irload.errors import ShapeMismatch


@dataclass(frozen=True, slots=True)
class Dim:
    """The sizes that one axis may have: every n with lo ≤ n ≤ hi; `hi` None means unbounded."""

    lo: int = 0
    hi: int | None = None

    @staticmethod
    def of(value: Dim | int | tuple[int | None, int | None] | None) -> Dim:
        """A Dim from a size, from None or −1 (any size), or from a pair (lo, hi) whose ends may be None.

        Raises ShapeMismatch for a size below −1, TypeError for other objects.
        """
        if isinstance(value, Dim):
            return value
        if value is None or value == -1:
            return ANY
        if isinstance(value, tuple) and len(value) == 2:
            lo, hi = value
            return Dim(max(lo or 0, 0), None if hi is None or hi < 0 else hi)
        try:
            is_negative = value < 0
        except TypeError:
            raise TypeError(
                f"a dim is an int, a pair (lo, hi) or None, found {value!r}; Shape has an argument per dim: Shape(1, 3)"
            ) from None
        if is_negative:
            raise ShapeMismatch(f"a dimension cannot be {value}")
        size = number(value)
        return Dim(size, size)

    @property
    def is_static(self) -> bool:
        """True when exactly one size is possible."""
        return self.lo == self.hi

    @property
    def size(self) -> int:
        """The one possible size. Raises ShapeMismatch for a dynamic dim."""
        if self.lo != self.hi:
            raise ShapeMismatch(f"dimension {self} is dynamic where a static one is needed")
        return self.lo

    @property
    def is_one(self) -> bool:
        """True for the constant 1; False for a symbolic size, even if its value is 1 at the traced shape."""
        return not is_size(self.lo) and self.lo == 1 == self.hi

    def is_same(self, other: Dim) -> bool:
        """True for dims that are equal for all shapes of the inputs."""
        return self.hi is not None and other.hi is not None and alike(self.lo, other.lo) and alike(self.hi, other.hi)

    def contains(self, other: Dim | int) -> bool:
        """True when every size of `other` is also one of this dim's."""
        other = Dim.of(other)
        return self.lo <= other.lo and (self.hi is None or (other.hi is not None and other.hi <= self.hi))

    def meet(self, other: Dim) -> Dim | None:
        """Return the intersection of two dims that must be equal; None if it is empty."""
        lo = max(self.lo, other.lo)
        hi = self.hi if other.hi is None else other.hi if self.hi is None else min(self.hi, other.hi)
        return None if hi is not None and hi < lo else Dim(lo, hi)

    def hull(self, other: Dim) -> Dim:
        """Return the smallest interval that contains both dims, for example of the results of two branches."""
        return Dim(min(self.lo, other.lo), None if self.hi is None or other.hi is None else max(self.hi, other.hi))

    def broadcast(self, other: Dim) -> Dim | None:
        """The NumPy broadcast of two dims, or None if they cannot broadcast."""
        if other.is_one or self.is_same(other):
            return self
        if self.is_one:
            return other
        if self.contains(1) and other.contains(1):
            return self.hull(other)
        if self.contains(1):
            return other
        if other.contains(1):
            return self
        return self.meet(other)

    def __add__(self, other: Dim | int) -> Dim:
        other = _interval(other)
        return Dim(
            max(self.lo + other.lo, 0), None if self.hi is None or other.hi is None else max(self.hi + other.hi, 0)
        )

    def __sub__(self, other: Dim | int) -> Dim:
        other = _interval(other)
        lo = 0 if other.hi is None else max(self.lo - other.hi, 0)
        return Dim(lo, None if self.hi is None else max(self.hi - other.lo, 0))

    def __mul__(self, other: Dim | int) -> Dim:
        other = _interval(other)
        if self.hi == 0 or other.hi == 0:
            return Dim(0, 0)
        return Dim(self.lo * other.lo, None if self.hi is None or other.hi is None else self.hi * other.hi)

    def __floordiv__(self, divisor: int) -> Dim:
        return Dim(self.lo // divisor, None if self.hi is None else self.hi // divisor)

    def ceil_div(self, divisor: int) -> Dim:
        """Division by a positive integer, rounded up."""
        return Dim(-(-self.lo // divisor), None if self.hi is None else -(-self.hi // divisor))

    def __str__(self) -> str:
        if self.is_static:
            return str(self.lo)
        if self.hi is None:
            return f"{self.lo}.." if self.lo else "?"
        return f"{self.lo}..{self.hi}" if self.lo else f"..{self.hi}"

    __repr__ = __str__


def _interval(value: Dim | int) -> Dim:
    """An operand of dim arithmetic; unlike `Dim.of` it allows negative offsets."""
    return value if isinstance(value, Dim) else Dim(value, value)


ANY = Dim(0, None)
"""The dim that allows any size."""
ARRAY_AXES = 64
"""Maximum number of axes of a NumPy array."""
MAX_AXES = 1 << 12
"""Maximum rank of a shape. A file can declare a rank of 2 to the 40 by a single number."""


class Shape:
    """A partial shape: a tuple of dims, or unranked. Immutable, hashable, iterable over its dims.

    `Shape(1, 3, None, (1, 8))` is `[1,3,?,1..8]`; `Shape.unranked()` is `[...]`. Iterating over or indexing an unranked
    shape raises ShapeMismatch, so test `rank is None` first.
    """

    __slots__ = ("_dims", "_sizes")
    _dims: tuple[Dim, ...] | None
    """The dims, None if unranked. `shape_of` leaves them unset until they are read."""
    _sizes: tuple[int, ...] | None
    """The sizes, None unless all are known."""

    def __init__(self, *dims: Dim | int | tuple[int | None, int | None] | None) -> None:
        self._dims = tuple(map(Dim.of, dims))
        sizes = tuple([d.lo for d in self._dims if d.lo == d.hi])
        self._sizes = sizes if len(sizes) == len(dims) else None

    def __getattr__(self, name: str) -> tuple[Dim, ...]:
        if name == "_dims" and self._sizes is not None:
            self._dims = dims = tuple([Dim(size, size) for size in self._sizes])
            return dims
        raise AttributeError(f"'Shape' object has no attribute '{name}'", name=name, obj=self)

    @staticmethod
    def unranked() -> Shape:
        """The shape of unknown rank."""
        return UNRANKED

    @staticmethod
    def any(rank: int | None) -> Shape:
        """A shape of `rank` unknown dims; unranked for None. Raises ShapeMismatch beyond `MAX_AXES`."""
        if rank is not None and rank > MAX_AXES:
            raise ShapeMismatch(f"a tensor has {rank} axes; at most {MAX_AXES} are supported")
        return UNRANKED if rank is None else Shape(*(ANY,) * rank)

    @staticmethod
    def parse(text: str) -> Shape:
        """The shape of an IR attribute: `1,?,2..8,..4`, brackets and blanks allowed; `...` is unranked, empty a scalar.

        Raises ShapeMismatch with the item that is not a dimension.
        """
        body = text.strip().removeprefix("[").removesuffix("]").strip()
        if body == "...":
            return UNRANKED
        return Shape(*(_parse_dim(item.strip(), text) for item in body.split(","))) if body else Shape()

    @property
    def dims(self) -> tuple[Dim, ...]:
        """The dims. Raises ShapeMismatch for an unranked shape."""
        if self._dims is None:
            raise ShapeMismatch("the rank of the shape is unknown")
        return self._dims

    @property
    def rank(self) -> int | None:
        """The number of axes, or None."""
        if self._sizes is not None:
            return len(self._sizes)
        return None if self._dims is None else len(self._dims)

    @property
    def is_static(self) -> bool:
        """True when the rank and every dim are known."""
        return self._sizes is not None

    @property
    def is_dynamic(self) -> bool:
        """The opposite of `is_static`."""
        return not self.is_static

    @property
    def static(self) -> tuple[int, ...]:
        """The sizes as plain integers. Raises ShapeMismatch for a dynamic shape."""
        if self._sizes is None:
            raise ShapeMismatch(f"shape {self} is dynamic where a static one is needed")
        return self._sizes

    @property
    def size(self) -> Dim:
        """The number of elements as an interval."""
        if self._dims is None:
            return ANY
        if self._sizes is not None:
            count = prod(self._sizes)
            return Dim(count, count)
        return reduce(Dim.__mul__, self._dims, Dim(1, 1))

    def contains(self, other: Shape) -> bool:
        """True if this shape allows every shape that `other` allows."""
        if self._dims is None:
            return True
        if other._sizes is not None:
            sizes = other._sizes
            within = [d.lo <= n and (d.hi is None or n <= d.hi) for d, n in zip(self._dims, sizes, strict=False)]
            return len(self._dims) == len(sizes) and all(within)
        if other._dims is None or len(other._dims) != len(self._dims):
            return False
        return all(a.contains(b) for a, b in zip(self._dims, other._dims, strict=True))

    def meet(self, other: Shape) -> Shape | None:
        """Return the intersection, None if it is empty."""
        if self._dims is None or other._dims is None:
            return other if self._dims is None else self
        if len(self._dims) != len(other._dims):
            return None
        met = [a.meet(b) for a, b in zip(self._dims, other._dims, strict=True)]
        return None if any(d is None for d in met) else Shape(*met)

    def hull(self, other: Shape) -> Shape:
        """The smallest shape that allows both; unranked if the ranks differ."""
        if self.rank is None or self.rank != other.rank:
            return UNRANKED
        return Shape(*(a.hull(b) for a, b in zip(self.dims, other.dims, strict=True)))

    def broadcast(self, other: Shape) -> Shape:
        """The NumPy broadcast. Raises ShapeMismatch if two dims differ and neither is 1."""
        if self._dims is None or other._dims is None:
            return UNRANKED
        rank = max(len(self._dims), len(other._dims))
        ones = (Dim(1, 1),) * rank
        left, right = (ones + self._dims)[-rank:] if rank else (), (ones + other._dims)[-rank:] if rank else ()
        dims: list[Dim] = []
        for a, b in zip(left, right, strict=True):
            dim = a.broadcast(b)
            if dim is None:
                raise ShapeMismatch(f"shapes {self} and {other} cannot broadcast: {a} against {b}")
            dims.append(dim)
        return Shape(*dims)

    def without_leading_ones(self, rank: int | None) -> Shape:
        """The shape without the leading axes of length 1 that exceed `rank` axes."""
        if self._dims is None or rank is None:
            return self
        excess = max(len(self._dims) - rank, 0)
        ones = next((k for k, dim in enumerate(self._dims[:excess]) if not dim.contains(1)), excess)
        return Shape(*self._dims[ones:])

    def with_dim(self, axis: int, dim: Dim | int) -> Shape:
        """A copy with one dim replaced; `axis` may be negative."""
        dims = list(self.dims)
        dims[axis] = Dim.of(dim)
        return Shape(*dims)

    def __len__(self) -> int:
        return len(self.dims)

    def __iter__(self) -> Iterator[Dim]:
        return iter(self.dims)

    @overload
    def __getitem__(self, index: int) -> Dim: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Dim, ...]: ...
    def __getitem__(self, index: int | slice) -> Dim | tuple[Dim, ...]:
        return self.dims[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Shape):
            if self._sizes is None or other._sizes is None:
                return self._dims == other._dims
            return self._sizes == other._sizes
        if isinstance(other, tuple | list):
            return self.is_static and self.static == tuple(other)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self._dims if self._sizes is None else self._sizes)

    def __bool__(self) -> bool:
        return True

    def __str__(self) -> str:
        return "[...]" if self._dims is None else f"[{','.join(map(str, self._dims))}]"

    __repr__ = __str__


UNRANKED = Shape()
UNRANKED._dims = None  # noqa: SLF001
UNRANKED._sizes = None  # noqa: SLF001


def _parse_dim(item: str, text: str) -> Dim:
    if item in ("?", "-1"):
        return ANY
    lo, dots, hi = item.partition("..")
    lo, hi = lo.strip(), hi.strip()
    digits = (part for part in ((lo, hi) if dots else (lo,)))
    if all(not part or (part.isascii() and part.isdigit() and len(part) < 19) for part in digits) and (lo or hi):
        dim = Dim(int(lo or 0), int(hi) if hi else None) if dots else Dim.of(int(lo))
        if dim.hi is None or dim.lo <= dim.hi:
            return dim
    raise ShapeMismatch(f"'{item}' in shape '{text}' is not a dimension; write an integer, ?, -1, a..b, a.. or ..b")


def normalize_axis(axis: int, rank: int, name: str = "axis", *, scalar_axis: bool = False) -> int:
    """`axis` counted from the front. Raises ShapeMismatch if it is outside −rank..rank−1.

    `scalar_axis`: a scalar has axis 0, as in the operations for which OpenVINO accepts it. Axes are i64, and converters
    write −1 also as a u64: an axis from 2^63 up is less by 2^64, as in OpenVINO.
    """
    if axis >= 1 << 63:
        axis -= 1 << 64
    count = max(rank, 1) if scalar_axis else rank
    if not -count <= axis < count:
        raise ShapeMismatch(f"{name} {axis} is out of range for rank {rank}; expected {-count}..{count - 1}")
    return axis + count if axis < 0 else axis


def normalize_axes(axes: Iterable[int], rank: int, name: str = "axes", *, scalar_axis: bool = False) -> tuple[int, ...]:
    """Each axis counted from the front, in the given order. Raises ShapeMismatch as `normalize_axis` does."""
    return tuple(normalize_axis(int(a), rank, name, scalar_axis=scalar_axis) for a in axes)


@lru_cache(maxsize=1 << 12)
def shape_of(sizes: tuple[int, ...]) -> Shape:
    """The static shape with these sizes. Cached, as inference at run time needs a shape for each array."""
    shape = object.__new__(Shape)
    shape._sizes = sizes
    return shape


def without_unit_axes(sizes: tuple[int, ...], keep: int = 1) -> tuple[int, ...]:
    """Return the sizes without ones at the end: (1, 1000) for (1, 1000, 1, 1). Keeps at least `keep` sizes."""
    rank = len(sizes)
    while rank > keep and sizes[rank - 1] == 1:
        rank -= 1
    return sizes[:rank]
