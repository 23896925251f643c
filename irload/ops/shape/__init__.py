"""Operations that read or change shapes, without changing values."""
