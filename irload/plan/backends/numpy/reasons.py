"""Why each kernel is selected, as shown by `explain`."""

from __future__ import annotations

REASONS = {
    "1x1": "a 1×1 convolution is one matmul over all positions",
    "im2col of a small map": "small map: threads share the channels, so each reads a part of the weights",
    "winograd": "3×3, stride 1, many channels, large map: a quarter of the multiplications",
    "im2col": "windows are copied into rows in the cache, followed by a matmul",
    "depthwise": "one filter per channel: sums of products over windows, for rows that stay in the cache",
    "matmul by rows": "threads share the rows",
    "matmul by columns": "few rows: threads share the columns, so each reads a part of the weights",
    "weight streaming": "few rows: the large weights are read once, in stored order, and not packed",
    "batched matmul": "one product per matrix of the stack",
    "head by head": "the scores of a few heads stay in the cache between the two products",
    "tiles": "elementwise operations on tiles that stay in the cache",
    "rows": "rows that stay in the cache",
    "rows, moved": "the axis is not the last one, so the data are transposed before and after",
    "halves": "the halves of each row are combined without a copy that swaps them",
    "separable": "one axis after the other",
    "copy": "the output cannot be a view of the input",
    "slices": "each input is copied to its slice of the output",
    "compute": "no kernel supports the operation, so its reference `compute` runs",
}
"""The reason for each kernel, by name of the kernel."""
