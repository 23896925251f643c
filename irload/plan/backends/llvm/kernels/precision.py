"""In which type matmuls and convolutions multiply."""

from __future__ import annotations

from irload.plan.backends.llvm.dot import Dot, byte_dot, dots
from irload.plan.backends.llvm.elements import BF16, F32
from irload.plan.backends.llvm.kernels.groups import joined, side_by_side
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import DEPTH, ROWS
from irload.plan.backends.llvm.tuning import LEAST_DEPTH, LEAST_MADE, LEAST_PAIRS, LEAST_PRODUCTS, LEAST_SUMMED
from irload.plan.ir.steps import ConvStep, ConvTransposeStep, MatMulStep, ProductStep


def chosen_dot(step: ProductStep, selector: Selector) -> Dot:
    """The dot by which a step multiplies: bf16 if it is allowed and faster."""
    integers = step.integers if isinstance(step, ConvStep | MatMulStep) else None
    if integers is not None:
        return byte_dot(selector.target, saturates=not integers.pairs_fit)
    bf16 = selector.bf16 and pays_in_bf16(step, selector.target)
    return dots(selector.target)[BF16 if bf16 else F32]


def pays_in_bf16(step: ProductStep, target: Target) -> bool:
    """True if bf16 is faster than f32. Not if some outputs of a transposed convolution see no tap."""
    return step.taps > 0 and not step.multiplies_integers and _is_faster(step, target)


def _is_faster(step: ProductStep, target: Target) -> bool:
    """True if tiles are filled well, or if copied data are multiplied by two vectors or more, and there is work."""
    shape, taps = step.matrix, step.taps
    channels, depth = joined(shape, side_by_side(shape, target))[1:]
    products = step.output.size * shape[2] * taps
    if target.tiles and isinstance(step, MatMulStep):  # data are mostly f32: copying them does not pay for few columns
        return depth >= DEPTH // 2 and channels >= ROWS and products >= LEAST_PRODUCTS
    if target.tiles:
        return depth >= LEAST_SUMMED and channels >= LEAST_MADE and products >= LEAST_PRODUCTS
    if isinstance(step, ConvTransposeStep):  # its phases, with few taps each, are as fast in f32 (Sapphire Rapids)
        return False
    return depth >= LEAST_DEPTH and -(-channels // ROWS) * taps >= 2 and products >= LEAST_PAIRS
