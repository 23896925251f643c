"""The kernels, one family a file: what it takes, how operands are packed, how threads share it, and its code."""
