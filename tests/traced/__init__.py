"""Plans for many shapes: traced with symbols for the input dims, bound to each shape."""
