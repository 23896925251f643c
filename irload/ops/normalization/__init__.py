"""Normalization: by statistics given, computed, or of a neighbourhood."""
