"""The program of a plan: values, steps, expressions, constants, and their invariants."""
