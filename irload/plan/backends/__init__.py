"""Back ends execute the steps of a program: their contract (base.py), registry (registry.py), and one package each."""
