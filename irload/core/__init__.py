"""The basic types of irload: element types, shapes, tensor types, attributes, and the base class of operations."""
