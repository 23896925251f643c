"""Values that a loop only extends, by Concat or ScatterUpdate: their parts are joined once, after all iterations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino as ov
import pytest

import irload
from irload.core import element as et
from irload.core.subgraph import Accumulator
from irload.errors import ExecutionError, IRError, LimitExceeded
from irload.model import Model
from irload.ops.infrastructure.loop import Loop
from irload.ops.infrastructure.parts import Collected
from irload.ops.movement.concat import Concat
from irload.ops.movement.scatter import ScatterUpdate
from irload.plan.accumulators import Accumulation
from irload.plan.interpreter import InterpreterRun
from irload.safety.limits import Limits
from tests.harness.body import Body, input_entry, output_entry
from tests.harness.runtime import core

ROWS, WIDTH = 2, 3


def growing(**options: Any) -> Model:
    """The model of `growing_ir`."""
    return irload.read_model(*growing_ir(**options))


def growing_ir(
    *,
    by: str = "Concat",
    axis: int = 1,
    declared: str | None = None,
    read: Sequence[str] = (),
    first: bool = True,
    gathered: bool = False,
    index: str = "counter",
    trips: int = 4,
) -> tuple[bytes, bytes]:
    """A Loop that extends a value by a part of x in iteration k.

    `by`: Concat appends the first k mod 3 + 1 columns (rows for an even axis); ScatterUpdate replaces position k by the
    first column or row times k. `read`: values read once more; `index`: the position, if not k.
    """
    shape = f"{ROWS},?" if axis % 2 else f"?,{WIDTH}"
    graph = Body(bytearray())
    body = Body(graph.weights)
    counter = body.parameter(et.i64, "")
    past = body.parameter(et.f32, declared or shape)
    x = body.parameter(et.f32, f"{ROWS},{WIDTH}")
    number = body.op("Unsqueeze", counter, body.constant(np.array([0])))
    along, one = body.constant(np.array([axis % 2])), body.constant(np.array([1]))
    stop = one
    if by == "Concat":
        stop = body.op("Add", body.op("Mod", number, body.constant(np.array([WIDTH]))), one)
    part = body.op("Slice", x, body.constant(np.array([0])), stop, one, along, version="opset8")
    if by == "Concat":
        extended = body.op("Concat", *((past, part) if first else (part, past)), axis=axis)
    else:
        part = body.op("Multiply", part, body.op("Convert", counter, destination_type="f32"))
        at = {"counter": number, "scalar": counter, "next": body.op("Add", number, one)}[index]
        part = body.op("Squeeze", part, along) if index == "scalar" else part
        extended = body.op("ScatterUpdate", past, at, part, body.constant(np.array(axis)), version="opset3")
    carried = body.result(extended)
    results = [carried, body.result(body.constant(np.bool_(True)))]
    lines = [
        input_entry(-1, counter, purpose="current_iteration"),
        input_entry(2, past),
        input_entry(3, x),
        output_entry(-1, results[1], purpose="execution_condition"),
        output_entry(4, carried, **({"axis": 0} if gathered else {})),
    ]
    for k, name in enumerate(read):
        total = body.op("ReduceSum", {"past": past, "extended": extended}[name], body.constant(np.array([0, 1])))
        lines.append(output_entry(5 + k, body.result(total)))
    data, start = graph.parameter(et.f32, f"{ROWS},{WIDTH}"), graph.parameter(et.f32, declared or shape)
    inputs = [graph.constant(np.array(trips)), graph.constant(np.bool_(True)), start, data]
    graph.loop(inputs, body, lines, [(carried, past)], 1 + len(read))
    return graph.model()


def tensor_list(*, start: int = 0, step: int = 1, mode: str = "numpy", by: str = "Slice") -> tuple[bytes, bytes]:
    """A Loop as TensorFlow's front end writes it: a list of tensors, whose shape is set when the first is written.

    Iteration k writes x · k at position `start` + k · `step`, which the loop counts itself.
    """
    graph = Body(bytearray())
    body = Body(graph.weights)
    at, past, x = body.parameter(et.i32, ""), body.parameter(et.f32, "?,?,?"), body.parameter(et.f32, f"{ROWS},{WIDTH}")
    item = body.op("Multiply", x, body.op("Convert", at, destination_type="f32"))
    zero, one = body.constant(np.array([0])), body.constant(np.array([1]))
    length = body.op("ShapeOf", past, version="opset3", output_type="i64")
    if by == "Slice":
        length = body.op("Slice", length, zero, one, one, zero, version="opset8")
    else:
        length = body.op("Gather", length, zero, body.constant(np.array(0)), version="opset8", batch_dims=0)
    shape = body.op("Concat", length, body.op("ShapeOf", item, version="opset3", output_type="i64"), axis=0)
    if by == "constant":
        shape = body.constant(np.array([6, ROWS, WIDTH]))
    data = body.op("Broadcast", past, shape, version="opset3", mode=mode)
    index = body.op("Reshape", at, body.constant(np.array([-1])), special_zero=False)
    axis = body.constant(np.array(0))
    written = body.op("ScatterUpdate", data, index, body.op("Unsqueeze", item, zero), axis, version="opset3")
    following = body.op("Add", at, body.constant(np.int32(step)))
    results = [body.result(v) for v in (written, following, body.constant(np.bool_(True)))]
    lines = (
        input_entry(2, at),
        input_entry(3, past),
        input_entry(4, x),
        output_entry(5, results[0]),
        output_entry(-1, results[2], purpose="execution_condition"),
    )
    inputs = [graph.constant(np.array(3)), graph.constant(np.bool_(True)), graph.constant(np.int32(start))]
    inputs += [graph.parameter(et.f32, "?,1,1"), graph.parameter(et.f32, f"{ROWS},{WIDTH}")]
    graph.loop(inputs, body, lines, [(results[0], past), (results[1], at)], 1)
    return graph.model()


@pytest.mark.parametrize(("start", "by"), [(0, "Slice"), (2, "Gather"), (-3, "Slice")])
def test_lists_of_tensors(start: int, by: str) -> None:
    """An empty list remains empty, because empty outputs are not computed."""
    model = irload.read_model(*tensor_list(start=start, by=by))
    assert found(model) == (Accumulator(0, 1, 0, writes=True, broadcasts=True, counter=0),)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    rng = np.random.default_rng(0)
    for length in (6, 5, 0):
        feed = [rng.standard_normal(shape).astype(np.float32) for shape in ((length, 1, 1), (ROWS, WIDTH))]
        np.testing.assert_array_equal(compiled(feed)[0], plain(feed)[0])


@pytest.mark.parametrize("options", [{"step": 2}, {"mode": "bidirectional"}, {"by": "constant"}], ids=str)
def test_other_lists_are_written_in_each_iteration(options: dict[str, Any]) -> None:
    model = irload.read_model(*tensor_list(**options))
    assert found(model) == ()
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    feed = [np.ones((6, 1, 1), np.float32), np.ones((ROWS, WIDTH), np.float32)]
    np.testing.assert_array_equal(compiled(feed)[0], plain(feed)[0])


def values(axis: int = 1, length: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(length)
    start = (ROWS, length) if axis % 2 else (length, WIDTH)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((ROWS, WIDTH), start)]


def found(model: Model) -> Sequence[Accumulator]:
    (loop,) = (node for node in model.nodes if node.type == "Loop")
    assert isinstance(loop.op, Loop)
    return Accumulation.of(loop.op.body).accumulators


@pytest.mark.parametrize("by", ["Concat", "ScatterUpdate"])
@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_equals_the_plain_run_and_the_runtime(by: str, axis: int) -> None:
    xml, weights = growing_ir(by=by, axis=axis)
    model = irload.read_model(xml, weights)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    runtime = core().compile_model(core().read_model(xml, ov.Tensor(np.frombuffer(weights, np.uint8))), "CPU")
    assert found(model) == (Accumulator(0, 1, axis, writes=by == "ScatterUpdate"),)
    for length in (4, 5) if by == "ScatterUpdate" else (1, 0, 5):
        (actual,) = compiled(values(axis, length)).values()
        (expected,) = plain(values(axis, length)).values()
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(actual, runtime(values(axis, length))[0])


def test_a_position_without_its_axis_is_written() -> None:
    model = growing(by="ScatterUpdate", index="scalar")
    assert found(model) == (Accumulator(0, 1, 1, writes=True, is_slice=False),)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    np.testing.assert_array_equal(compiled(values(length=4))[0], plain(values(length=4))[0])


@pytest.mark.parametrize("by", ["Concat", "ScatterUpdate"])
def test_no_iteration_extends_the_value(by: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The plain run calls the operation in each iteration, a plan never."""
    calls: list[str] = []
    for op in (Concat, ScatterUpdate):
        compute = op.compute

        def counted(self: Any, *arrays: np.ndarray, compute: Any = compute) -> np.ndarray:
            calls.append(self.type)
            return compute(self, *arrays)

        monkeypatch.setattr(op, "compute", counted)
    model = growing(by=by)
    irload.compile_model(model, 1, jit=False)(values(length=4))
    assert calls == []
    irload.compile_model(model, 1, optimize=False)(values(length=4))
    assert calls == [by] * 4


def test_intermediates_have_the_whole_value() -> None:
    model = growing()
    (concat,) = (node.name for graph in model.walk() for node in graph.nodes if node.type == "Concat")
    layers = irload.compile_model(model, 1).intermediates(values(), f"*/{concat}")
    shapes = [array.shape for _, array in layers]
    assert shapes == [(ROWS, n) for n in (2, 4, 7, 8)]


@pytest.mark.parametrize(
    "options",
    [
        {"read": ["past"]},
        {"read": ["extended"]},
        {"by": "ScatterUpdate", "read": ["past"]},
        {"by": "ScatterUpdate", "index": "next", "trips": 3},
        {"first": False},
        {"gathered": True, "trips": 1},
    ],
    ids=str,
)
def test_others_are_extended_in_each_iteration(options: dict[str, Any]) -> None:
    model = growing(**options)
    assert found(model) == ()
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    feed = values(length=4)
    for actual, expected in zip(compiled(feed).values(), plain(feed).values(), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-6)


def test_without_iterations_the_initial_value_remains() -> None:
    model = growing(trips=0)
    (actual,) = irload.compile_model(model, 1)(values(length=3)).values()
    np.testing.assert_array_equal(actual, values(length=3)[1])


def test_the_whole_is_limited() -> None:
    model = growing()
    compiled = irload.compile_model(model, 1, limits=Limits(tensor_bytes=4 * ROWS * 7))
    with pytest.raises(LimitExceeded, match="extends has grown too large"):
        compiled(values())


@pytest.mark.parametrize("shape", [(ROWS + 1, 1), (1, 1), (ROWS,)], ids=str)
def test_parts_of_another_shape_are_errors(shape: tuple[int, ...]) -> None:
    """Their shapes may depend on values, so that inference does not find them."""
    collected = Collected(Accumulator(0, 0, 1), [np.zeros((ROWS, 1), np.float32)])
    with pytest.raises(ExecutionError, match=r"iteration 0 adds a part of shape .* to a value of shape \[2, 1\]"):
        collected.append(np.zeros(shape, np.float32), InterpreterRun(irload.compile_model(growing(), 1), {}))


def test_positions_outside_the_value_are_errors() -> None:
    model = growing(by="ScatterUpdate")
    for options in ({}, {"optimize": False}):
        with pytest.raises(IRError, match="index 3 is out of range for an axis of 3"):
            irload.compile_model(model, 1, **options)(values(length=3))
