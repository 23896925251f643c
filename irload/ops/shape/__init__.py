"""Operations that read or change shapes and keep the values as they are."""
