"""The memory layout of the elements that a contraction sums at one position, such as the channels of a tap."""

from __future__ import annotations

from irload.core.tensor import Array
from irload.plan.backends.llvm import tiles
from irload.plan.backends.llvm.dot import Dot
from irload.plan.backends.llvm.elements import SIZES, WORD, element_of, is_contiguous
from irload.plan.backends.llvm.tile import SumLevel
from irload.plan.ir.program import PlanInvalid
from irload.record import record


@record()
class Chunks:
    """The `depth` elements of a position: chunks of 32, `stride` bytes apart, or single elements, `step` bytes apart.

    The last chunk starts `last` bytes after the first. If tiles read data in place, it may overlap the previous chunk;
    the weights of the shared elements are then 0 in one of the two chunks. `nbytes`: the bytes of a row of a tile.
    """

    depth: int
    stride: int
    last: int
    nbytes: int = tiles.BYTES
    step: int | None = None
    """None for a copy, whose chunks are padded with zeros."""

    @staticmethod
    def copied(depth: int, stride: int) -> Chunks:
        """The chunks of a copy."""
        return Chunks(depth, stride, (-(-depth // tiles.DEPTH) - 1) * stride)

    @staticmethod
    def in_place(depth: int, step: int, dot: Dot) -> Chunks:
        """The elements of the data without a copy, with a stride of `step` bytes."""
        if not dot.tiled:
            return Chunks(depth, 0, 0, step=step)
        size = SIZES[dot.a]
        nbytes = min(depth * size, tiles.BYTES)
        return Chunks(depth, tiles.BYTES, depth * size - nbytes, nbytes, step)

    @property
    def count(self) -> int:
        """The number of chunks."""
        return -(-self.depth // tiles.DEPTH)

    @property
    def overlap(self) -> bool:
        """True if the last chunk overlaps the previous one."""
        return self.last != (self.count - 1) * self.stride

    def offset(self, chunk: int) -> int:
        """The bytes from the first chunk to this one."""
        return min(chunk * self.stride, self.last)

    def levels(self, dot: Dot) -> tuple[SumLevel, ...]:
        """The loops of a register tile over the words of a position: over the chunks of a copy, then over words."""
        if self.step is not None:
            return (SumLevel(dot.words(self.depth), self.step * dot.k),)
        if self.count == 1:
            return (SumLevel(dot.words(self.depth), WORD),)
        return SumLevel(self.count, self.stride), SumLevel(tiles.DEPTH // dot.k, WORD)

    def rows(self, dot: Dot) -> int:
        """The elements of the sum per chunk of packed weights that these loops need."""
        if self.step is not None:
            return dot.k
        return dot.words(self.depth) * dot.k if self.count == 1 else tiles.DEPTH


def reads_in_place(data: Array, axis: int, depth: int, dot: Dot) -> bool:
    """True if a contraction can read `depth` elements along an axis without a copy.

    If a word has several elements, the data must be contiguous and of the dot's type, and `depth` must be a multiple of
    the word, or for tiles at least one row. Raises PlanInvalid if the dot multiplies f32 and the data are not f32.
    """
    alike = element_of(data) == dot.a
    if dot.k == 1:
        if not alike:
            raise PlanInvalid(f"a product in {dot.a} reads data stored in {element_of(data)}")
        return True
    return alike and is_contiguous(data, axis) and (depth % dot.k == 0 or (dot.tiled and depth >= tiles.DEPTH))
