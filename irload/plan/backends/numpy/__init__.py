"""The NumPy back end, complete on its own: it selects a kernel for every step and runs them as tables of calls."""
