"""Where irload departs from the runtime on purpose: one entry a place, with the reason.

Semantics follow the specification, then the reference kernels, then the CPU plugin. A case generator that would meet
one of these places either avoids it or compares with the side that follows the specification.
"""

from __future__ import annotations

from tests.harness.deviation import Deviation
from tests.harness.deviations_layers import LAYERS

TENSORS: tuple[Deviation, ...] = (
    Deviation(
        ("Add", "Subtract", "Multiply", "SquaredDifference", "BitwiseLeftShift"),
        "CPU plugin",
        "saturates narrow integers; the reference and irload wrap",
    ),
    Deviation(("TopK",), "CPU plugin", "orders equal elements at random in the types that the reference does not sort"),
    Deviation(("TopK",), "CPU plugin", "rejects k = 0, or crashes on it; irload returns empty outputs"),
    Deviation(
        ("Range",),
        "CPU plugin",
        "of version 4, steps in f32 and rounds each value when an integer type is made of floats that come at run "
        "time; by the specification “the calculations are done after casting”, and “the rounding for casting values "
        "are done towards zero”, as the reference and irload do",
    ),
    Deviation(
        ("Range",),
        "reference",
        "of version 1 counts |stop - start| / |step| values in f16 and bf16 when the step leads away from stop; "
        "there are none",
    ),
    Deviation(
        ("ReduceL1", "ReduceL2"),
        "reference and CPU plugin",
        "take absolute values where no axes are given; the specification and irload leave the tensor as it is",
    ),
    Deviation(
        ("ReduceSum", "ReduceProd", "ReduceMean", "ReduceL1", "ReduceL2"),
        "CPU plugin",
        "saturates narrow integers and multiplies integers in f32; irload wraps, as the reference does for i32 and i64",
    ),
    Deviation(
        ("ReduceMax", "ReduceMin"),
        "CPU plugin",
        "gives NaN or not, by where it stands in the lane of a vector; the reference and irload leave NaN aside",
    ),
    Deviation(
        ("ReduceMax", "MaxPool"),
        "reference and CPU plugin",
        "give the lowest finite f32 where all elements are −∞; irload does so too",
    ),
    Deviation(
        ("Gelu",), "CPU plugin", "multiplies beyond f32 above 1.7e38, so gives infinity there and NaN of infinity"
    ),
    Deviation(
        ("ReduceMin",), "CPU plugin", "gives the greatest finite number of none; the reference and irload infinity"
    ),
    Deviation(("MatMul",), "reference", "divides by zero (SIGFPE) where the inner axis is empty; irload gives zeros"),
    Deviation(
        ("Einsum",), "CPU plugin", "mixes up the axes of an ellipsis when a third operand has none; no reference kernel"
    ),
    Deviation(("Einsum",), "model reader", "rejects blanks in the equation, which the specification allows"),
    Deviation(
        ("Einsum",),
        "shape inference",
        "keeps letters that one operand repeats in the output of an implicit equation; by the specification they go",
    ),
    Deviation(
        ("Einsum",),
        "shape inference",
        "keeps the 1 of a letter that an operand of unknown rank has too, though it may broadcast; irload does not",
    ),
    Deviation(
        ("Inverse",),
        "CPU plugin",
        "with adjoint gives the transposed inverse; the specification and irload det(A) · inverse",
    ),
    Deviation(
        ("ScatterUpdate",),
        "reference",
        "mixes the updates up where the shape of indices or updates has a trailing 1; the CPU plugin and irload do not",
    ),
    Deviation(
        ("Slice", "StridedSlice"),
        "shape inference",
        "takes the lengths at the least and the greatest size for the interval of an output, also where the length "
        "does not grow with the size: ends counted from opposite sides (-3:3), or a backward slice from before the "
        "first element; irload gives an interval that holds all lengths",
    ),
    Deviation(
        ("StridedSlice",),
        "shape inference",
        "with begin not constant, counts no new axes behind an ellipsis, so that the ellipsis stands for too few axes; "
        "a masked end of a backward slice of an unbounded axis bounds it by 2**63 - 2, irload not at all",
    ),
    Deviation(
        ("Gather",),
        "reference and CPU plugin",
        "read memory that is not theirs for batch axes of one element and indices out of range; the reference dies of "
        "an axis that is no constant. irload gives zeros for indices out of range and is compared with a plain loop",
    ),
    Deviation(("Broadcast", "Tile"), "reference", "dies of empty tensors, which the case generators leave out"),
    Deviation(
        ("Divide",),
        "CPU plugin",
        "truncates the quotient of integers whatever m_pythondiv says; irload floors by default, as the reference",
    ),
    Deviation(
        ("Greater", "GreaterEqual"),
        "reference",
        "swaps the operands together with their roles under auto_broadcast pdpd; irload aligns b in a",
    ),
    Deviation(
        ("Mod", "FloorMod"),
        "shape inference",
        "bounds a remainder by those at the ends of its operands, which misses what lies between; irload bounds it by "
        "the divisor",
    ),
    Deviation(
        ("SquaredDifference",),
        "CPU plugin",
        "takes a constant scalar for one of shape [1], which auto_broadcast none then refuses; irload does not",
    ),
    Deviation(("CumSum",), "reader", "refuses CumSum without axis, which the specification makes optional"),
    Deviation(
        ("ErfInv",),
        "reference",
        "is off by half a percent near 1; irload is exact to the last bits",
    ),
    Deviation(("IsFinite", "IsInf"), "CPU plugin", "takes the infinities of f64 for finite; irload does not"),
    Deviation(
        ("SegmentMax",),
        "CPU plugin",
        "fills with the lowest i32 for i64, and with −∞ for f16 and bf16; irload takes the lowest value of the type",
    ),
    Deviation(
        ("BitwiseLeftShift", "BitwiseRightShift"), "CPU plugin", "shifts i64 and u64 as i32; irload shifts all 64 bits"
    ),
    Deviation(
        ("Convert", "ConvertLike"),
        "reference",
        "rounds to bf16 upwards only from odd values, to f8 through f16, NaN to u32 and u64 differently, and holds "
        "integers beyond f16 at its largest value; irload rounds once to the nearest, beyond f16 to infinity",
    ),
    Deviation(
        ("Convert",),
        "CPU plugin",
        "saturates i64 to i32 and computes i64 and u64 as i32; the reference and irload wrap",
    ),
    Deviation(
        ("Exp", "Sqrt", "Log", "Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Tanh", "Erf", "Sigmoid"),
        "CPU plugin",
        "rounds what integers become in its own way; irload follows the reference",
    ),
    Deviation(
        ("SoftMax", "LogSoftmax", "Elu", "HSwish", "HSigmoid", "HardSigmoid", "PReLU", "CumSum"),
        "shape inference",
        "takes integers or booleans, wrong lengths of slopes or axes out of range; the specification and irload do not",
    ),
    Deviation(
        ("RandomUniform",),
        "shape inference",
        "takes the largest length of a shape input of unknown length for the rank; irload infers no rank",
    ),
    Deviation(
        ("RandomUniform",),
        "reference",
        "does not round its bf16 arithmetic to the nearest, so values are off by a unit; reads seeds as signed "
        "numbers; crashes on f64 bounds below zero with alignment pytorch",
    ),
    Deviation(
        ("RandomUniform", "Multinomial"),
        "CPU plugin",
        "draws f64 and f16 as f32 and i64 as i32; for Multinomial it draws from another generator altogether",
    ),
    Deviation(
        ("ReadValue",),
        "CPU plugin",
        "begins with zeros where the initial value is the very tensor that Assign stores; irload takes that value. A "
        "ReadValue without Assign fails there",
    ),
    Deviation(
        ("Loop",),
        "shape inference",
        "of a condition known to be false gives a concatenated output the shape [0] and others a first axis of 0; "
        "irload empties the axis of concatenation and keeps initial values",
    ),
    Deviation(
        ("Loop",),
        "CPU plugin",
        "runs no iteration for a trip count below -1 and returns what is in memory; the reference and irload take "
        "every negative one for no limit",
    ),
    Deviation(
        ("TensorIterator",),
        "shape inference",
        "does not widen merged inputs whose shape changes, and counts two parts on an empty axis; irload widens as for "
        "Loop and counts none",
    ),
    Deviation(
        ("TensorIterator",),
        "CPU plugin",
        "cuts parts from the whole axis whatever start and end say; irload cuts from start to end",
    ),
    Deviation(
        ("If",),
        "shape inference",
        "joins a scalar and a 1-D branch to [?], which admits no scalar; irload leaves the rank open. Infers both "
        "branches also where the condition is known; irload only the one that runs",
    ),
    Deviation(
        ("RDFT", "IRDFT"),
        "CPU plugin",
        "reads beyond the data where signal_size fills it up, crashes on -1 and on axes or sizes that come at run "
        "time, and errs for sizes of 1",
    ),
    Deviation(
        ("RDFT", "IRDFT"),
        "shape inference",
        "leaves all axes but the last as they are while the values of signal_size are unknown; irload knows none of "
        "them",
    ),
    Deviation(
        ("ISTFT",),
        "CPU plugin",
        "with center and an odd frame_size gives one element more than is specified and inferred; crashes for a "
        "signal_length of 0",
    ),
    Deviation(
        ("Transpose",),
        "shape inference",
        "takes data of unknown rank for a scalar where order is empty; irload does not",
    ),
    Deviation(
        ("SliceScatter",),
        "CPU plugin",
        "writes nothing, or crashes, when start, stop, step or axes are no constants, and crashes for backward and "
        "empty slices; the reference has no kernel; irload takes them all",
    ),
    Deviation(
        ("Unique",),
        "reference and CPU plugin",
        "find wrong slices and indices along an axis; irload is compared with a plain loop",
    ),
    Deviation(("SpaceToBatch",), "reference", "dies of many valid inputs; irload is compared with the CPU plugin"),
    Deviation(("Roll",), "CPU plugin", "refuses one scalar shift for several axes; irload takes it"),
    Deviation(("NonZero",), "reference", "leaves the indices of a single element unset where it has several axes"),
)
"""Those of the operations on tensors: arithmetic, reductions, types, movement, shapes, control flow."""

DEVIATIONS = TENSORS + LAYERS
