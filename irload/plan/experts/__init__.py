"""Mixtures of experts: replaces nodes whose sizes depend on values by nodes of known shapes."""
