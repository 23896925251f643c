"""The meaning of every operation, a folder a family. `index.py` says what is where, and the registry imports what a model needs."""
