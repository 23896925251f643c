"""Pooling: the mean or the maximum of windows."""
