"""The meaning of every operation, a folder a family. The registry imports all of it on first use."""
