"""The language of the project: the terms to use, and the phrases that they replace."""
