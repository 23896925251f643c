"""Logic on booleans."""
