"""Graphs of single operations, and the kernels that their plans have."""
