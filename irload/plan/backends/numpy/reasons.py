"""The reason for each kernel's selection, as shown in explanations."""

from __future__ import annotations

REASONS = {
    "1x1": "a kernel of one tap is a matmul over all positions",
    "1x1, line by line": "the same into the middle of a padded buffer",
    "1x1, weight streaming": "the same for small maps: large weights are read once, as they are stored",
    "im2col, weight streaming": "small maps: large weights are read once",
    "im2col of a small map": "small maps: threads share the channels, so that each reads a part of the weights",
    "winograd": "3×3 of stride 1 with many channels on a large map: a quarter of the multiplications",
    "im2col": "windows copied into rows in the cache, then a matmul",
    "depthwise": "one filter per channel: sums of products over windows, in rows that stay in the cache",
    "matmul by rows": "threads share the rows",
    "matmul by columns": "few rows: threads share the columns, so that each reads a part of the weights",
    "weight streaming": "few rows: large weights are read once, as they are stored, and need no packing",
    "batched matmul": "one product for each matrix of the stack",
    "head by head": "scores of a few heads stay in the cache from the first product to the second",
    "tiles": "elementwise work, tile by tile while it is in the cache",
    "rows": "rows that stay in the cache",
    "rows, moved": "the axis is not the last one, so it is moved there and back",
    "halves": "the halves of a row are combined without a copy that exchanges them",
    "separable": "along one axis, then along the other",
    "copy": "the permutation is not a view",
    "slices": "each part is copied to its position",
    "compute": "by its readable compute: no kernel supports it",
}
"""By name of the kernel."""
