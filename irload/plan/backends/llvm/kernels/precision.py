"""Selects the type in which matmuls and convolutions multiply: f32, bf16 or integers."""

from __future__ import annotations

from irload.core.size import reaches
from irload.core.tensor import Array
from irload.plan.backends.llvm.dot import I16_PAIRS, Dot, byte_dot, dots
from irload.plan.backends.llvm.elements import BF16, DTYPES, F32, I16, element_of
from irload.plan.backends.llvm.kernels.depthwise import is_depthwise
from irload.plan.backends.llvm.kernels.groups import groups_per_tile, joined
from irload.plan.backends.llvm.selector import Selector
from irload.plan.backends.llvm.target import Target
from irload.plan.backends.llvm.tiles import DEPTH, ROWS
from irload.plan.backends.llvm.tuning import LEAST_DEPTH, LEAST_INPUTS, LEAST_OUTPUTS, LEAST_PAIRS, LEAST_PRODUCTS
from irload.plan.ir.program import Step
from irload.plan.ir.steps import ConvStep, ConvTransposeStep, Integers, MatMulStep, ProductStep


def chosen_dot(step: ProductStep, selector: Selector) -> Dot:
    """The dot of a step: in integers if it multiplies integers, in bf16 if this is allowed and faster, else in f32.

    Data stored in bf16 are multiplied in bf16, even if f32 is faster at this shape: a traced plan has one memory layout
    for all shapes, and products in f32 cannot read it.
    """
    integers = step.integers if isinstance(step, ConvStep | MatMulStep) else None
    if integers is not None:
        return integer_dot(integers, selector.stored(step.inputs[0]), selector.target)
    stored = selector.memory.layout(step.inputs[0]).storage == DTYPES[BF16]
    bf16 = stored or (selector.bf16 and pays_in_bf16(step, selector.target))
    return dots(selector.target)[BF16 if bf16 else F32]


def integer_dot(integers: Integers, data: Array, target: Target) -> Dot:
    """The dot of quantized data, stored in u8 or i16, and weights of i8."""
    return I16_PAIRS if element_of(data) == I16 else byte_dot(target, saturates=not integers.pairs_fit)


def pays_in_i16(step: Step, target: Target) -> bool:
    """True for a product of integers that is faster if its data are stored in i16: sums of two products exceed i16."""
    integers = step.integers if isinstance(step, ConvStep | MatMulStep) else None
    if integers is None or integers.pairs_fit or target.vnni:
        return False
    if not isinstance(step, ConvStep):
        return True
    return not (is_depthwise(step.inputs[1].shape) or may_be_winograd(step))


def may_be_winograd(step: ConvStep) -> bool:
    """True if Winograd's algorithm may compute a convolution."""
    return step.inputs[1].shape[3:] == (3, 3) and {*step.strides, *step.dilations} == {1}


def pays_in_bf16(step: ProductStep, target: Target) -> bool:
    """True if bf16 is faster than f32. False for transposed convolutions with outputs that no tap contributes to.

    Computed weights of convolutions are packed as bf16 if no words or chunks of their channels are padded.
    """
    if step.taps == 0 or step.multiplies_integers or not _is_faster(step, target):
        return False
    if isinstance(step, MatMulStep) or step.inputs[1].is_constant:
        return True
    depth = step.matrix[2]
    return not target.tiles and (depth % DEPTH == 0 or (depth < DEPTH and depth % 2 == 0))


def _is_faster(step: ProductStep, target: Target) -> bool:
    """True if there are enough products, and the copy of the data is used enough.

    For AMX, tiles must be mostly filled. For AVX512_BF16, each word of the copy must be multiplied by at least two
    vectors. A symbolic number of products is assumed to be enough, so that one plan runs all shapes.
    """
    shape, taps = step.matrix, step.taps
    channels, depth = joined(shape, groups_per_tile(shape, target))[1:]
    products = step.output.size * shape[2] * taps
    if target.tiles and isinstance(step, MatMulStep):  # data are mostly f32: a copy does not pay for few columns
        return depth >= DEPTH // 2 and channels >= ROWS and reaches(products, LEAST_PRODUCTS)
    if target.tiles:
        return depth >= LEAST_INPUTS and channels >= LEAST_OUTPUTS and reaches(products, LEAST_PRODUCTS)
    if isinstance(step, ConvTransposeStep):  # all phases multiply the copy, but channels must fill a vector
        return depth >= LEAST_DEPTH and channels >= ROWS and reaches(products, LEAST_PAIRS)
    return depth >= LEAST_DEPTH and -(-channels // ROWS) * taps >= 2 and reaches(products, LEAST_PAIRS)
