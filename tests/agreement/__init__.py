"""Compares complete models with OpenVINO's runtime and with plain execution: `python -m tests.agreement DIR…`."""
