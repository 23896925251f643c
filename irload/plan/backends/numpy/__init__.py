"""The NumPy back end, which runs every step: it selects kernels and runs them as tables of calls."""
