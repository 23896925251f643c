"""Graphs of single operations, and the expected kernels of their plans."""
