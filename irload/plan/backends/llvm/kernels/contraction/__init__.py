"""The driver of all contractions: y = epilogue(Σ a · b), with the loop nest, the blocking and the micro-kernels."""
