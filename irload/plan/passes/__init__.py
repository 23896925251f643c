"""Rewrites of programs that hold for every back end, one a file, each stated as before → after; see pipeline.py."""
