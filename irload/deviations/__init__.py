"""Differences between OpenVINO and its specification: the list, and their emulation."""
