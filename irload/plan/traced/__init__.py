"""Plans for many shapes: traced once with symbols for the input dims, bound to a shape by evaluating their sizes."""
