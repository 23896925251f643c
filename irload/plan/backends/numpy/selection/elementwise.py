"""Kernel selection for Elementwise steps."""

from __future__ import annotations

from irload.plan.backends.numpy.kernels.elementwise import elementwise_parts
from irload.plan.backends.numpy.selection.selector import NumpySelector, Selected
from irload.plan.ir.steps import ElementwiseStep


def elementwise(step: ElementwiseStep, selector: NumpySelector) -> Selected:
    """Select the kernel for an expression with one result."""
    out, operands = selector.array(step.output), [selector.array(v) for v in step.inputs]
    return "tiles", [elementwise_parts(step.expression, operands, out, selector.scratch)]
