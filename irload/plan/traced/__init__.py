"""Plans for many shapes: traced once with symbols for the input dims, and bound to a shape by evaluating all sizes."""
