"""The detection family."""
