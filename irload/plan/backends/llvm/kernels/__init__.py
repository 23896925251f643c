"""The kernels, one family per file: selection, packing of operands, division among threads, and code."""
