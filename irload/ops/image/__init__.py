"""Image processing: resizing, sampling on a grid, and conversions between colour formats."""
