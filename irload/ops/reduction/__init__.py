"""Reductions: sums, products, means, norms and extremes along axes."""
