"""Rewrites of programs that are valid for every back end, one per file; pipeline.py lists them in order."""
