"""What runs the steps of a program: the contract (base.py), the list of back ends (registry.py), a package for each."""
