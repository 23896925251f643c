"""Convolutions, forward and backward, over 1 to 3 spatial axes."""
