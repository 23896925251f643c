"""NumPy implementations of the plan's steps, each selected by a rule on shapes and attributes.

A kernel returns calls, pairs of a function and its arguments, bound to fixed views of memory; it does no work itself.
"""
