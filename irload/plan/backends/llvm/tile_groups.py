"""The micro-kernel for data that are quantized in groups: sums of a group in i32, which are scaled and added in f32."""

from __future__ import annotations

from typing import Any

from irload.plan.backends.llvm.builder import Function, Pointer, Vec
from irload.plan.backends.llvm.elements import F32, I32, SIZES
from irload.plan.backends.llvm.intrinsics import load_after
from irload.plan.backends.llvm.tile import RegisterTile, TileSum
from irload.plan.memory.layout import FACTORS


def write_grouped_sums(f: Function, tile: RegisterTile, x: list[Pointer], w: Pointer, ahead: Pointer) -> list[Vec]:
    """Emit the sums of a tile as `write_sums` does, in f32."""
    sums = [f.zero()] * (tile.rows * tile.vectors)
    return GroupedSum(f, tile, {}, None).groups(x, w, [ahead, *sums])[1:]


class GroupedSum(TileSum):
    """Emits the loop over groups. Rows of the data are `RowCodes`; weights are unsigned codes.

    For a scale s and a zero point z of the weights, and the scale t of the data, Σ s (w − z) · t x of a group is
    s · (t Σ w x) − s z · (t Σ x), where t and t Σ x are stored after the codes of the data.
    """

    def groups(self, x: list[Pointer], w: Pointer, state: list[Any]) -> list[Any]:
        """Emit all loops. `state`, and the result: the pointer to prefetched weights, then the sums in f32."""
        f, tile, count = self.f, self.tile, len(x)
        outer, inner = tile.levels
        nbytes = inner.count * tile.dot.k
        (first, last), step = self.range_of(0)
        none = [f.zero(I32)] * (tile.rows * tile.vectors)
        carried: list[Any] = [*x, *(p + outer.count * nbytes for p in x), w, *state]
        for group in f.range(first, last, 1, carried):
            xs, factors, ws = carried[:count], carried[count : 2 * count], carried[2 * count]
            ahead, *sums = self.level(1, xs, ws, [carried[2 * count + 1], *none])
            totals = self._added(factors, self._factors(w, group), sums, carried[2 * count + 2 :])
            moved = [*(p + nbytes for p in xs), *(p + FACTORS for p in factors)]
            carried[:] = [*moved, ws + step, ahead, *totals]
        return carried[2 * count + 1 :]

    def _factors(self, w: Pointer, group: Any) -> list[tuple[Vec, Vec | None]]:
        """The scale, and minus the scale times the zero point, for each vector of the weights."""
        assert self.compressed is not None
        form = self.compressed.compression
        group = group * self.tile.dot.group // form.group if form.group else 0
        result: list[tuple[Vec, Vec | None]] = []
        for panel, column in map(self.weights_at, range(self.tile.vectors)):
            scale, zero = self.compressed.loaded(self.f, w + panel, group, column)
            assert scale is not None
            zero = form.zero_point(self.f, zero)
            result.append((scale, None if zero is None else -(zero * scale)))
        return result

    def _added(
        self, factors: list[Pointer], weights: list[tuple[Vec, Vec | None]], sums: list[Vec], totals: list[Vec]
    ) -> list[Vec]:
        """The totals plus the scaled sums of a group. `factors`: the pointers to the factors of the data."""
        f, vectors, result = self.f, self.tile.vectors, list[Vec]()
        for r, (pointer, row) in enumerate(self.rows(factors)):
            scale, total = (f.broadcast(pointer, row + at) for at in (0, SIZES[F32]))
            for v, (factor, offset) in enumerate(weights):
                k = r * vectors + v
                added = f.fma(sums[k].converted() * scale, factor, totals[k])
                result.append(added if offset is None else f.fma(total, offset, added))
            load_after(f, result[-vectors:])
        return result
