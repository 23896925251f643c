"""The NumPy implementations of the plan's steps, each chosen by a rule on shapes and attributes.

A kernel does no work itself: it returns calls, pairs of a function and its arguments, bound to fixed views of memory.
"""
