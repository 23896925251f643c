"""Convolutions, forward and transposed, over 1 to 3 spatial axes."""
