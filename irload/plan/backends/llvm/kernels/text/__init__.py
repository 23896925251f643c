"""Kernels of tokenizers: automata that split and replace texts, hash tables of words, and models of subwords."""
