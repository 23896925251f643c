"""The NumPy back end, which runs every step except sums of samples: it selects kernels and runs tables of calls."""
