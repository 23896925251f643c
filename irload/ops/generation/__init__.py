"""Generation: tensors from a few numbers, including random ones."""
