"""Passes: rewrites of programs that are valid for every back end, one per file. `pipeline` lists them in order."""
