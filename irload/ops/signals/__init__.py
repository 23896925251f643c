"""Signals: discrete Fourier transforms, also short-time. Complex numbers are pairs on a last axis of size 2."""
