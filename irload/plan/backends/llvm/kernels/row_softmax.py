"""The arithmetic of a softmax along rows, which Softmax and attention share."""

from __future__ import annotations

from irload.plan.backends.llvm.builder import Vec


def larger(a: Vec, b: Vec) -> Vec:
    """The running maximum: the larger one; `b` where `a` is NaN, as the sum of the exponentials of its row is NaN."""
    return a.where(a.compare("ogt", b), b)


def added(a: Vec, b: Vec) -> Vec:
    """The sum of two parts of a row sum."""
    return a + b
