"""Diagnostics of a run: dumped intermediates, the first NaN, latencies, the configuration, and the user's cache."""
