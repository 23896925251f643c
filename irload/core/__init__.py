"""The vocabulary of irload: element types, shapes, tensor types, attributes, the base class of operations."""
