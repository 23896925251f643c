"""Conditions: choosing by a mask or a branch, and finding elements by their value."""
