"""What threads take parts of, where several work at one product."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from irload.plan.backends.llvm.kernels.block_product import BlockProduct
    from irload.plan.backends.llvm.kernels.product import Product

AnyProduct = TypeVar("AnyProduct", "Product", "BlockProduct")


def shared(product: AnyProduct, threads: int, data: int, weights: int) -> AnyProduct:
    """The product shared by tiles, or by panels of its weights. `data`, `weights`: their bytes.

    Each thread reads all weights in the first case, all data in the second.
    """
    if threads == 1:
        return product
    panels = replace(product, shared="panels")
    by_tiles, by_panels = _balance(product.count, threads), _balance(panels.count, threads)
    better = by_panels > 1.05 * by_tiles or (weights > data and by_panels >= 0.95 * by_tiles)
    return panels if better else product


def _balance(count: int, threads: int) -> float:
    """How much of the time all threads are busy."""
    return count / (-(-count // threads) * threads)
