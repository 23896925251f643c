"""What the tests of operations share: cases, the IR text of one, the real runtime, and the comparisons."""
