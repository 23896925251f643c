"""Pooling: windows reduced to their mean or their largest element."""
