"""Whole models against the runtime and against themselves: `python -m tests.agreement DIR…`, a row a model."""
