"""Runs the language model of a folder: tokenizers and generation of text, on the public API of compiled models."""
