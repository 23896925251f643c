"""Rewrites of programs that hold for every back end, one per file, each stated as before → after; see pipeline.py."""
