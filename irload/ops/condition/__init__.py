"""Conditions: selection by a mask or a branch, and search for elements by value."""
