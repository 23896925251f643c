"""The sorting family."""
