"""Which kernel runs each step, by rule on shapes and attributes: a file for each family, and a table of them all."""
