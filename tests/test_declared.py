"""Reading and running compare a model with its declarations: all ports, bodies too, for every new shape."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import irload
from irload import DeclaredDiffers
from irload.validation import differences
from tests.checks.bases import (
    CONV,
    DYNAMIC,
    IF,
    LOOP,
    RESHAPE,
    STATE,
    TENSOR_ITERATOR,
    Block,
    edges,
    f32,
    i64,
    inner,
    layer,
    net,
)


def port(id: int, *dims: int, precision: str = "FP32", names: str = "") -> str:
    named = f' names="{names}"' if names else ""
    return f'<port id="{id}" precision="{precision}"{named}>{"".join(f"<dim>{d}</dim>" for d in dims)}</port>'


def read(block: Block) -> irload.Model:
    text, weights = net(block)
    return irload.read_model(text.encode(), weights)


def line_of(block: Block, wanted: str, nth: int = 0) -> int:
    return [k for k, line in enumerate(net(block)[0].splitlines(), 1) if wanted in line][nth]


FALSE = CONV.edited((port(2, 1, 4, 6, 6, names="c"), port(2, 1, 4, 7, 6, names="c")))
"""The convolution's output port declares a wrong height; the port that it feeds is right."""

GROWING = Block(
    layer(0, "x", "Parameter", [], [f32(-1, 3)], 'shape="?,3" element_type="f32"', names=["x"])
    + layer(1, "a", "ReLU", [f32(-1, 3)], [f32(4, 3)])
    + layer(2, "b", "ReLU", [f32(4, 3)], [f32(-1, 3)], names=["y"])
    + layer(3, "out", "Result", [f32(-1, 3)], names=["y"]),
    edges((0, 0, 1, 0), (1, 1, 2, 0), (2, 1, 3, 0)),
)
"""Any number of rows, and a port in the middle that declares four."""


@pytest.mark.parametrize("block", [CONV, DYNAMIC, IF, LOOP, RESHAPE, STATE, TENSOR_ITERATOR, GROWING])
def test_sound_models_differ_nowhere(block):
    model = read(block)
    assert model.differences == []
    assert model.warnings == []
    assert irload.compile_model(model, strict=True).warnings == []


def test_every_difference_is_a_warning_with_layer_line_and_both_sides():
    block = FALSE.edited((port(0, 1, 4, 6, 6), port(0, 1, 5, 6, 6)), (port(1, 1, 4, 6, 6, names="y"), port(1, 9)))
    model = read(block)
    conv, relu = line_of(block, "<dim>7</dim>"), line_of(block, "<dim>5</dim>")
    assert model.warnings == [
        f"line {conv}: Convolution 'conv' (id 2): output port 2 declares [1,4,7,6], inferred [1,4,6,6]",
        f"line {relu}: ReLU 'relu' (id 3): input port 0 declares [1,5,6,6], but is fed [1,4,6,6]",
        f"line {relu + 3}: ReLU 'relu' (id 3): output port 1 declares [9], inferred [1,4,6,6]",
    ]
    assert [d.port for d in model.differences] == ["output port 2", "input port 0", "output port 1"]
    assert [str(d) for d in model.differences] == model.warnings


def test_types_and_ports_without_dims():
    block = CONV.edited(
        (port(2, 1, 4, 6, 6, names="c"), port(2, 1, 4, 6, 6, precision="FP16", names="c")),
        (port(1, 1, 4, 6, 6, names="y"), port(1, precision="I64", names="y")),
    )
    assert [d.message for d in read(block).differences] == [
        "output port 2 declares FP16, inferred FP32",
        "output port 1 declares I64 no dims, inferred FP32 [1,4,6,6]",
    ]


def test_it_runs_as_inferred_unless_strict():
    model = read(FALSE)
    x = np.ones((1, 3, 8, 8), np.float32)
    assert (irload.compile_model(model)(x)[0] == irload.compile_model(read(CONV))(x)[0]).all()
    with pytest.raises(
        DeclaredDiffers, match=r"Convolution 'conv' \(id 2\): output port 2 declares \[1,4,7,6\]"
    ) as error:
        irload.compile_model(model, strict=True)
    assert error.value.where.line == line_of(FALSE, "<dim>7</dim>")
    assert "more port" not in str(error.value)


def test_strict_reports_the_number_of_differences():
    block = FALSE.edited((port(0, 1, 3, 8, 8, names="x"), port(0, 1, 3, 9, 8, names="x")))
    with pytest.raises(DeclaredDiffers, match=r"Parameter 'x' \(id 0\).*; 1 more port differs$"):
        irload.compile_model(read(block), strict=True)


@pytest.mark.parametrize(
    ("block", "old", "new"),
    [
        (TENSOR_ITERATOR, port(2, 2, 1, 3), port(2, 2, 5, 3)),
        (LOOP, f"  {port(2, 1, 2)}", f"  {port(2, 1, 4)}"),
        (IF, f"  {port(1, 1, 2)}", f"  {port(1, 2, 1)}"),
    ],
    ids=["TensorIterator", "Loop", "If"],
)
def test_bodies(block, old, new):
    (difference,) = read(block.edited((old, new))).differences
    assert difference.where.line == line_of(block.edited((old, new)), new)
    assert difference.where.layer_type in ("Add", "ReLU")
    with pytest.raises(DeclaredDiffers):
        irload.compile_model(read(block.edited((old, new))), strict=True)


def test_ports_of_decompressed_constants_by_openvino_are_exempt():
    block = Block(
        layer(0, "w", "Const", [], [("FP16", (2,))], 'element_type="f16" shape="2" offset="0" size="4"')
        + layer(
            *(1, "up", "Convert", [("FP16", (2,))], [("FP16", (2,))], 'destination_type="f32"'),
            tail='<rt_info>\n<attribute name="decompression" version="0"/>\n</rt_info>',
        )
        + layer(2, "x", "Parameter", [], [f32(2)], 'shape="2" element_type="f32"', names=["x"])
        + layer(3, "sum", "Add", [f32(2), ("FP16", (2,))], [f32(2)], 'auto_broadcast="numpy"', names=["y"])
        + layer(4, "out", "Result", [f32(2)], names=["y"]),
        edges((0, 0, 1, 0), (2, 0, 3, 0), (1, 1, 3, 1), (3, 2, 4, 0)),
        bytes(4),
    )
    assert read(block).differences == []
    unmarked = block.edited(('name="decompression" version="0"', 'name="other" version="0"'))
    assert [d.message for d in read(unmarked).differences] == ["output port 1 declares FP16, inferred FP32"]


@pytest.mark.parametrize("optimize", [True, False])
def test_shapes_of_a_run_are_compared_again(optimize):
    compiled = irload.compile_model(read(GROWING), optimize=optimize)
    assert compiled(np.ones((4, 3), np.float32))[0].shape == (4, 3)
    assert compiled.warnings == []
    for _ in range(2):
        assert compiled(np.ones((2, 3), np.float32))[0].shape == (2, 3)
    line = line_of(GROWING, "<dim>4</dim>")
    assert compiled.warnings == [f"line {line}: ReLU 'a' (id 1): output port 1 declares [4,3], inferred [2,3]"]
    assert compiled.model.warnings == []


@pytest.mark.parametrize("optimize", [True, False])
def test_strict_raises_at_the_call_whose_shapes_differ(optimize):
    compiled = irload.compile_model(read(GROWING), optimize=optimize, strict=True)
    for _ in range(2):
        with pytest.raises(DeclaredDiffers, match=r"ReLU 'a' .* output port 1 declares \[4,3\], inferred \[2,3\]"):
            compiled(np.ones((2, 3), np.float32))
        assert compiled(np.ones((4, 3), np.float32))[0].shape == (4, 3)
    with pytest.raises(DeclaredDiffers):
        compiled.explain(np.ones((5, 3), np.float32))


def test_a_copy_is_as_strict():
    compiled = copy.copy(irload.compile_model(read(GROWING), strict=True))
    with pytest.raises(DeclaredDiffers):
        compiled(np.ones((2, 3), np.float32))


BY_VALUE = Block(
    layer(0, "x", "Parameter", [], [f32(-1)], 'shape="?" element_type="f32"', names=["x"])
    + layer(1, "target", "Parameter", [], [i64(2)], 'shape="2" element_type="i64"', names=["target"])
    + layer(2, "reshape", "Reshape", [f32(-1), i64(2)], [f32(2, 3)], 'special_zero="false"')
    + layer(3, "relu", "ReLU", [f32(2, 3)], [f32(-1, -1)], names=["y"])
    + layer(4, "out", "Result", [f32(-1, -1)], names=["y"]),
    edges((0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0), (3, 1, 4, 0)),
)


def test_shapes_that_depend_on_values():
    x = np.arange(6, dtype=np.float32)
    compiled, strict = (irload.compile_model(read(BY_VALUE), strict=s) for s in (False, True))
    for model in (compiled, strict):
        assert model([x, [2, 3]])[0].shape == (2, 3)
        assert model.warnings == []
    assert compiled([x, [3, 2]])[0].shape == (3, 2)
    assert [d.message for d in compiled.differences] == ["output port 2 declares [2,3], inferred [3,2]"]
    with pytest.raises(DeclaredDiffers, match=r"Reshape 'reshape' \(id 2\)"):
        strict([x, [3, 2]])


def test_a_rank_determined_only_at_run_time_is_not_declared():
    block = Block(
        layer(0, "x", "Parameter", [], [f32(4, 3)], 'shape="4,3" element_type="f32"', names=["x"])
        + layer(1, "axes", "Parameter", [], [i64(2)], 'shape="2" element_type="i64"', names=["axes"])
        + layer(2, "sum", "ReduceSum", [f32(4, 3), i64(2)], [f32()], 'keep_dims="false"', names=["y"])
        + layer(3, "out", "Result", [f32()], names=["y"]),
        edges((0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0)),
    )
    compiled = irload.compile_model(read(block), strict=True)
    assert compiled([np.ones((4, 3), np.float32), [1, 1]])[0].shape == (4,)  # one axis, named twice
    assert compiled.warnings == []


def test_bodies_whose_shapes_are_determined_at_run_time():
    step = f32(-1, -1)
    block = Block(
        layer(0, "x", "Parameter", [], [f32(-1)], 'shape="?" element_type="f32"', names=["x"])
        + layer(1, "target", "Parameter", [], [i64(2)], 'shape="2" element_type="i64"', names=["target"])
        + layer(2, "reshape", "Reshape", [f32(-1), i64(2)], [f32(-1, -1)], 'special_zero="false"')
        + layer(
            *(3, "ti", "TensorIterator", [f32(-1, -1)], [f32(-1, -1)]),
            names=["y"],
            tail='<port_map>\n<input external_port_id="0" internal_layer_id="0" axis="0"/>\n'
            '<output external_port_id="1" internal_layer_id="2" axis="0"/>\n</port_map>\n<body>\n<layers>\n'
            + inner(0, "row", "Parameter", [], [step], 'shape="?,?" element_type="f32"')
            + inner(1, "relu", "ReLU", [step], [f32(1, 2)])
            + inner(2, "res", "Result", [f32(1, 2)])
            + f"</layers>\n<edges>\n{edges((0, 0, 1, 0), (1, 1, 2, 0))}</edges>\n</body>",
        )
        + layer(4, "out", "Result", [f32(-1, -1)], names=["y"]),
        edges((0, 0, 2, 0), (1, 0, 2, 1), (2, 2, 3, 0), (3, 1, 4, 0)),
    )
    compiled = irload.compile_model(read(block))
    x = np.arange(6, dtype=np.float32)
    assert compiled([x, [3, 2]])[0].tolist() == x.reshape(3, 2).tolist()
    assert compiled.warnings == []
    assert compiled([x, [2, 3]])[0].tolist() == x.reshape(2, 3).tolist()
    assert {d.where.layer_name for d in compiled.differences} == {"relu"}


@pytest.mark.parametrize("strict", [False, True])
def test_a_reshaped_model_ignores_declared_shapes(strict):
    model = read(CONV).reshape([2, 3, 9, 9])
    compiled = irload.compile_model(model, strict=strict)
    assert compiled(np.ones((2, 3, 9, 9), np.float32))[0].shape == (2, 4, 7, 7)
    assert compiled.warnings == []


def test_a_dynamic_model_reshaped_within_its_declaration_is_compared():
    model = read(GROWING).reshape([2, 3])
    with pytest.raises(DeclaredDiffers):
        irload.compile_model(model, strict=True)  # plans for these shapes
    compiled = irload.compile_model(model)
    assert len(compiled.differences) == 1
    compiled(np.ones((2, 3), np.float32))


def test_no_more_names_are_stored_than_are_read(monkeypatch):
    monkeypatch.setattr(differences, "KEPT", 1)
    model = read(FALSE.edited((port(0, 1, 3, 8, 8, names="x"), port(0, 1, 3, 9, 8, names="x"))))
    assert len(model.differences) == 1


def test_the_error_can_be_pickled():
    (error,) = read(FALSE).differences
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.where, again.port) == (str(error), error.where, error.port)
