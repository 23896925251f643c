"""Matrix operations: products, contractions, inverses."""
