"""Activations, element by element or along one axis."""
