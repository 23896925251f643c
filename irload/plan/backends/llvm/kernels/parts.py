"""Long sums in parts: all tiles of a block take one part of the weights before the next, so that it stays in the cache.

A panel of all weights of a long sum, and as much data, would push each other out of the second level.
"""

from __future__ import annotations

from dataclasses import replace
from math import prod

from irload.plan.backends.llvm.elements import F32
from irload.plan.backends.llvm.kernels.product import Product
from irload.plan.backends.llvm.tile import UNROLL, Level

LONG = 1536
"""Elements from which a sum is taken in parts. 2048 for 49 rows are 7 % faster so, 3072 for 64 rows 10 %, 8192 twice.

Measured on Sapphire Rapids, whose second level of the cache has 2 MB.
"""
PART = 1024
"""The most elements of a part, of which a panel of two vectors is 128 KB; parts of a half are as fast."""


def in_parts(product: Product) -> Product:
    """The product with its sums in parts, where they are long and several tiles meet the same weights.

    Partial sums lie where results will, so those must be stored in f32.
    """
    first, *rest = product.levels
    length = prod(level.count for level in product.levels)
    if length <= LONG or product.count == 1 or product.y.element != F32:
        return product
    if rest:
        is_split = first.size > 0 and first.axis != -1  # rows of taps
        return replace(product, split=is_split)
    parts = next((n for n in range(2, length // PART * 2 + 2) if length % (n * UNROLL) == 0 and length <= n * PART), 1)
    if parts == 1 or first.axis is not None:
        return product
    own = length // parts
    return replace(product, levels=(Level(parts, own * first.x), Level(own, first.x)), split=True)
