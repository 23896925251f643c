"""Shared by the tests of operations: cases, the IR text of one, OpenVINO's runtime, and the comparisons."""
