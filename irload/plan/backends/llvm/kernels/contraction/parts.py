"""Long sums in parts: all tiles of a block take one part of the weights before the next, so that it stays in the cache.

A panel of all weights of a long sum, and as much data, would push each other out of the second level.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernels.contraction.product import Product
from irload.plan.backends.llvm.tile import Level
from irload.plan.backends.llvm.tuning import LONG_SUM, PART, UNROLL


def in_parts(product: Product) -> Product:
    """The product with long sums in parts, if several tiles use the same weights.

    Partial sums are stored in y, so that both must be f32.
    """
    first, *rest = product.levels
    length = prod(level.count for level in product.levels)
    if length <= LONG_SUM or product.count == 1 or product.y.element != F32 or product.dot.sums != F32:
        return product
    if rest:
        is_split = first.windows is not None and first.windows.size > 0 and first.axis != -1  # rows of taps
        return replace(product, split=is_split)
    turn = max(UNROLL, product.dot.members)
    parts = next((n for n in range(2, length // PART * 2 + 2) if length % (n * turn) == 0 and length <= n * PART), 1)
    if parts == 1 or first.axis is not None:
        return product
    own = length // parts
    return replace(product, levels=(Level(parts, own * first.x), Level(own, first.x)), split=True)
