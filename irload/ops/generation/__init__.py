"""Generation: operations that make tensors from a few numbers, among them the random ones."""
