"""The meaning of every operation, a folder a family. The registry imports what a model needs, by `index.py`."""
