"""The back end of compiled kernels: Python writes LLVM IR, llvmlite compiles it, object files are cached and run."""
