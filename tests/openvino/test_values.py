"""Types, shapes, dimensions, layouts and vectors: the same values and errors as OpenVINO's."""

from __future__ import annotations

import numpy as np
import openvino
import pytest

import irload.openvino
from tests.openvino.both import failure, opset, plain, same

NAMES = (
    *("boolean", "bf16", "f16", "f32", "f64", "i4", "i8", "i16", "i32", "i64", "u1", "u2", "u3", "u4", "u6", "u8"),
    *("u16", "u32", "u64", "nf4", "f8e4m3", "f8e5m2", "f8e8m0", "f4e2m1", "string", "dynamic"),
)
FACTS = ("type_name", "bitwidth", "size", "real", "integral", "integral_number", "signed", "quantized")
SHAPES = (
    "[1,2]",
    "[-1,3]",
    "[]",
    "(4,)",
    "'?,3..5'",
    "'[1,..8]'",
    "'...'",
    "[(1,4),-1]",
    "['2..3',1]",
    "[ov.Dimension(2,7),3]",
)
DIMENSIONS = ("3", "-1", "1,5", "3,-1", "'2..9'", "'?'", "'7'", "", "0")
COMPARISONS = ("compatible", "refines", "relaxes", "same_scheme")
LAYOUTS = ("NCHW", "N...C", "[N,C,H,W]", "...", "NC??", "[n, c]", "[N,...]", "?HWC", "NC...")

EXPRESSIONS = [
    *(f"ov.Type.{n}" for n in NAMES),
    *(f"[getattr(ov.Type.{n}, f) for f in {FACTS}]" for n in NAMES),
    *(f"ov.Type.{n}.to_dtype()" for n in NAMES if n not in ("string", "dynamic")),
    *(f"[ov.Type.{n}.compatible(ov.Type.f32), ov.Type.{n}.merge(ov.Type.dynamic)]" for n in NAMES),
    *(
        f"ov.Type(np.{d})"
        for d in ("float16", "float32", "float64", "int8", "int64", "uint16", "bool_", "str_", "bytes_")
    ),
    *(f"ov.Type({d})" for d in ("int", "float", "bool", "str", "bytes", "np.dtype('U7')", "'complex64'")),
    "ov.Type.f32 == ov.Type(np.float32)",
    "{ov.Type.f32: 1}[ov.Type(np.float32)]",
    *(f"ov.PartialShape({s})" for s in SHAPES),
    *(f"[ov.PartialShape({s}).is_dynamic, str(ov.PartialShape({s})), ov.PartialShape({s}).rank]" for s in SHAPES),
    *(f"[ov.PartialShape({s}).get_min_shape(), ov.PartialShape({s}).get_max_shape()]" for s in SHAPES),
    *(f"ov.PartialShape({s}).to_shape()" for s in SHAPES),
    *(f"len(ov.PartialShape({s}))" for s in SHAPES),
    *(f"ov.PartialShape({s}) == [1,2]" for s in SHAPES),
    *(
        f"[getattr(ov.PartialShape({a}), m)(ov.PartialShape({b})) for m in {COMPARISONS}]"
        for a in SHAPES[:7]
        for b in SHAPES[:7]
    ),
    *(f"ov.Dimension({d})" for d in DIMENSIONS),
    *(f"[ov.Dimension({d}).min_length, ov.Dimension({d}).max_length, ov.Dimension({d}).is_static]" for d in DIMENSIONS),
    *(f"ov.Dimension({d}).get_length()" for d in DIMENSIONS),
    *(f"[ov.Dimension({d}) == 3, ov.Dimension({d}) == ov.Dimension(-1)]" for d in DIMENSIONS),
    *(
        f"[getattr(ov.Dimension({a}), m)(ov.Dimension({b})) for m in {COMPARISONS}]"
        for a in DIMENSIONS
        for b in DIMENSIONS
    ),
    "ov.PartialShape.dynamic()",
    "ov.PartialShape.dynamic(3)",
    "ov.PartialShape.dynamic(ov.Dimension(2))",
    "ov.PartialShape([1,2,3])[1]",
    "ov.PartialShape([1,2,3])[1:]",
    "ov.PartialShape([1,2]).get_dimension(3)",
    *(f"ov.PartialShape({text!r})" for text in ("[1,2", "1,2]", "[", "]", "[]")),
    "ov.Dimension(1.5)",
    "ov.Dimension(1, 2.5)",
    "ov.PartialShape([1,2])[2]",
    "ov.PartialShape(5)",
    "ov.PartialShape([1.5])",
    "hash(ov.PartialShape([1]))",
    "list(ov.PartialShape([1,-1]))",
    *(
        "ov.Shape([1,2])",
        "ov.Shape((3,))",
        "ov.Shape('2,3')",
        "ov.Shape()",
        "str(ov.Shape([1,2]))",
        "len(ov.Shape([4,5]))",
    ),
    *("ov.Shape([1,2,3])[0:2]", "ov.Shape([1,2]) == [1,2]", "ov.Shape([1,2]) == (1,3)", "ov.Shape([1,2])[-1]"),
    *("ov.Shape([-1])", "tuple(ov.Shape([7,8]))", "hash(ov.Shape([1]))"),
    *(
        "ov.Strides([1,2])",
        "str(ov.Strides([1,2]))",
        "ov.Strides([3]) == [3]",
        "ov.AxisSet([2,1,1])",
        "ov.AxisVector([2,1])",
    ),
    *("len(ov.AxisSet({3,4}))", "ov.CoordinateDiff([1,2])", "list(ov.Coordinate([5,6]))"),
    *(f"ov.Layout('{text}')" for text in LAYOUTS),
    *(f"[ov.Layout('{text}').has_name(n) for n in 'NCHWD']" for text in LAYOUTS),
    *(f"ov.Layout('{text}').get_index_by_name('C')" for text in LAYOUTS),
    *("ov.Layout()", "ov.Layout().empty", "ov.Layout('NC').empty", "ov.Layout.scalar()", "str(ov.Layout('NC'))"),
    *("ov.Layout('NC') == 'NC'", "ov.Layout('NC') == ov.Layout('[N,C]')", "ov.Layout('NC') != 'NH'"),
    *("ov.Layout('N...C...')", "ov.Layout('NN')", "ov.Layout('[N,C')", "ov.Layout('N-C')", "ov.Layout('')"),
    *("ov.layout_helpers.batch_idx(ov.Layout('NCHW'))", "ov.layout_helpers.width_idx(ov.Layout('N...W'))"),
    *("ov.layout_helpers.has_depth(ov.Layout('NCHW'))", "ov.layout_helpers.height_idx(ov.Layout('NC'))"),
]


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_values_equal_the_runtimes(expression):
    def value(module):
        return plain(failure(lambda: eval(expression, {"ov": module, "np": np})))

    assert value(irload.openvino) == value(openvino)


@pytest.mark.parametrize("source", [np.float16, np.float64, np.int8, np.uint16, np.int64, np.bool_])
def test_constants_keep_and_convert_their_values(source):
    def script(ov):
        ops = opset(ov)
        values = np.linspace(0.25, 72.25, 7).astype(source)  # exact in bf16; OpenVINO rounds other values down
        for target in (None, np.float64, np.int64, ov.Type.bf16, ov.Type.f8e4m3, source):
            node = ops.constant(values) if target is None else ops.constant(values, target)
            yield node.get_element_type(), node.data, [node.get_data(dtype=t) for t in (np.float32, np.bool_)]
            for dtype in (None, source, node.data.dtype):
                for copied in (True, False):
                    array = node.get_data(dtype=dtype, copy=copied)
                    yield array, array.flags.owndata
        yield ops.constant(tensor=ov.Tensor(values), shared_memory=True).data
        sum_ = ops.add(values.astype(np.float32), np.float32(1), name="sum")
        yield [source.get_node().friendly_name for source in sum_.input_values()]

    same(script)


@pytest.mark.parametrize("kind", [np.float32, np.int32, list])
@pytest.mark.parametrize(
    ("name", "values"),
    [("i4", (-8, 7, 8)), ("u4", (0, 15, 16)), ("u2", (3, 4)), ("u3", (7, 8)), ("u6", (63, 64)), ("u1", (0, 1, 2))],
)
def test_constants_of_packed_types_reject_numbers_beyond_them(name, values, kind):
    def script(ov):
        for value in values:
            data = [value] if kind is list else np.array([value], kind)
            yield failure(lambda argument=data: ov.op.Constant(getattr(ov.Type, name), ov.Shape([1]), argument).data)

    same(script)


def test_constants_of_low_precision_round():
    def script(ov):
        values = np.array([0.3, 3, 0.7, 1.5, 100, 1, 0.11], np.float32)
        for name in ("nf4", "f8e8m0", "f4e2m1", "f8e4m3"):
            constant = ov.op.Constant(getattr(ov.Type, name), ov.Shape([7]), values)
            yield ov.compile_model(ov.Model([opset(ov).convert(constant, "f32")], [], "m"), "CPU")([])[0]

    same(script)
