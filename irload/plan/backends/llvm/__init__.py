"""Compiled kernels: LLVM IR written by Python, compiled by llvmlite, kept as object files and run without Python."""
