"""The program of a plan: values, steps, expressions, constants, and the rules they obey."""
