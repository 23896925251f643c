"""Sparse operations: bags of embedding rows, and sparse tensors in coordinate form."""
