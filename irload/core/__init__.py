"""The vocabulary of irload: element types, shapes, tensor types, attributes, operations. Knows no operation."""
