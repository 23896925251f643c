"""Kernel selection for each step, by rule on shapes and attributes: one file per family, and a table of all."""
