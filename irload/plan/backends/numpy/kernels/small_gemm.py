"""MatMuls as one np.matmul over a stack of small blocks, whose operands BLAS reads in place.

OpenBLAS packs the operands of a product with more than WORK multiplications. For weights streamed from memory, and for
a few dozen rows, packing takes as long as the arithmetic. The product is therefore divided into a stack of blocks
below that limit, and loads from memory overlap with arithmetic.
"""

from __future__ import annotations

import numpy as np
from numpy.lib.stride_tricks import as_strided

from irload.core.tensor import Array
from irload.plan.backends.numpy.measured import HEIGHTS, LANES, RESIDENT, SINGLE_PANEL_COLUMNS, WIDTHS, WORK
from irload.plan.threads import Call, ThreadCalls


def panel_width(k: int, n: int) -> int | None:
    """Return the best panel width for a matrix [K,N]; None if the unpacked matrix is as fast."""
    if k * n > RESIDENT or n % LANES:
        return None
    fitting = [w for w in ((n, *WIDTHS) if n <= SINGLE_PANEL_COLUMNS else WIDTHS) if n % w == 0]
    for height in (8, 4):
        for width in fitting:
            if height * k * width <= WORK:
                return width
    return None


def products(a: Array, b: Array, out: Array) -> ThreadCalls:
    """out[…,M,N] = a[…,M,K] @ b, where b is […,K,N] or panels […,N/width,K,width]. Rows may be strided."""
    if b.ndim == a.ndim:
        return [(np.matmul, (a, b, out))]
    *_, k, width = b.shape
    rows = a.shape[-2]
    height = block_height(rows, k, width)
    whole = rows // height * height
    if 0 < rows - whole < HEIGHTS[-1] and whole and (height + rows - whole) * k * width <= WORK:
        whole -= height  # one larger tail is faster than a block and a tiny tail
    part: ThreadCalls = []
    if whole:
        blocks = _blocks(a[..., None, :whole, :], height), b[..., None, :, :]
        part.append((np.matmul, (*blocks, _blocks(_by_panels(out[..., :whole, :], width), height))))
    if whole < rows:
        part.append((np.matmul, (a[..., None, whole:, :], b, _by_panels(out[..., whole:, :], width))))
    return part


def transform(matrix: Array, x: Array, out: Array) -> Call:
    """out[…,S,N] = matrix[S,R] @ x[…,R,N] for a tiny matrix, in blocks of columns if BLAS would pack all of them."""
    n = x.shape[-1]
    pieces = next(p for p in range(1, n + 1) if n % p == 0 and matrix.size * (n // p) <= WORK)
    return np.matmul, (matrix, _by_panels(x, n // pieces), _by_panels(out, n // pieces))


def block_height(rows: int, k: int, width: int) -> int:
    """Return the number of rows of a block."""
    return next((h for h in HEIGHTS if h <= rows and h * k * width <= WORK), min(rows, HEIGHTS[-1]))


def _blocks(a: Array, height: int) -> Array:
    """Return […,M/height,height,K] of […,M,K]."""
    *lead, rows, k = a.shape
    *before, step, element = a.strides
    return as_strided(a, (*lead, rows // height, height, k), (*before, height * step, step, element))


def _by_panels(a: Array, width: int) -> Array:
    """Return […,N/width,M,width] of […,M,N]."""
    *lead, rows, n = a.shape
    *before, step, element = a.strides
    return as_strided(a, (*lead, n // width, rows, width), (*before, width * element, step, element))
