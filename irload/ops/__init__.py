"""Operations: one folder per family, and the registry that resolves the class of a layer."""
