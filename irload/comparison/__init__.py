"""Compares two models, two ways to run one, or dumped outputs, layer by layer."""
