"""Signals: discrete Fourier transforms, whole and short-time. Complex numbers are pairs on a last axis of size 2."""
