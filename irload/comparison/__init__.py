"""Comparing two models, two ways to run one, or what was dumped of them, layer by layer."""
