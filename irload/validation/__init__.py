"""Compares the types and shapes that ports declare with the inferred ones."""
