"""Comparisons and classifications, element by element."""
