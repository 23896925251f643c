"""Sorting and maximization."""
