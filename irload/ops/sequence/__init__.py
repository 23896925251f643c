"""Operations on sequences: attention, recurrent cells and sequences, one-hot encoding, CTC."""
