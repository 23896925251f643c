"""Folders of language models: tokenizers and generation of text, on the public API of compiled models."""
