"""Every operation: a folder per family, and the registry that finds the class for a layer."""
