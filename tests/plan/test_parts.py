"""Parts that do not depend on values are planned, the rest runs by `compute`; bodies are planned like graphs."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.element import ElementType
from irload.model import Model
from irload.ops.infrastructure.loop import Loop
from irload.runtime.plans import PLANS
from tests.harness.body import Body, back_edges, input_entry, output_entry, port_map
from tests.harness.case import Case, const, param
from tests.harness.verify import load
from tests.plan.graphs import Net


def kept_rows(net: Net) -> Model:
    """A convolution and a matmul, then a selection of the rows whose first element is positive, doubled."""
    x = net.op("ReLU", net.conv(net.input(1, 3, 6, 6), 3, 4, 3))
    rows = net.op("MatMul", net.reshape(x, 4, 16), net.weights(16, 5), transpose_a=False, transpose_b=False)
    first = net.op("Gather", rows, net.constant(0), net.constant(1), version="opset8", batch_dims=0)
    at = net.op("NonZero", net.op("Greater", first, net.constant(np.float32(0))), version="opset3", output_type="i64")
    layer = net.op("Gather", rows, net.reshape(at, -1), net.constant(0), version="opset8", batch_dims=0)
    return net.model(net.op("Add", layer, layer), rows)


def values(net: Net, seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(shape).astype(np.float32) for shape in net.shapes]


def test_parts_independent_of_values_are_planned() -> None:
    net = Net()
    model = kept_rows(net)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for seed in range(4):
        actual, expected = (c(values(net, seed)) for c in (compiled, plain))
        for k in range(2):
            assert actual[k].shape == expected[k].shape
            np.testing.assert_allclose(actual[k], expected[k], rtol=1e-5, atol=1e-5)
    steps = compiled.profile(values(net))
    assert [s.kernel for s in steps if s.operation in ("NonZero", "Add")] == ["compute"] * 2
    assert any("Convolution" in s.operation and s.kernel != "compute" for s in steps)
    explanation = compiled.explain()
    assert "Convolution" in explanation
    assert "NonZero" in explanation.split("then without a plan, because shapes depend on values")[1]


def test_small_parts_are_not_planned() -> None:
    net = Net()
    x = net.op("ReLU", net.input(3, 4))
    model = net.model(net.op("NonZero", x, version="opset3", output_type="i64"))
    compiled = irload.compile_model(model, 1)
    compiled(values(net))
    assert not compiled._pools


def recurrence(
    trips: int, *, grow: bool, read: bool = False, element: ElementType = et.f32
) -> tuple[Model, np.ndarray]:
    """A model and an input. The model iterates x ← tanh(x · W) and returns x and the sum of all x.

    With `grow` it returns all x in one tensor instead of the sum; with `read` it adds the maximum of all previous x.
    """
    rng = np.random.default_rng(0)
    body = Body(bytearray())
    x, seen = body.parameter(element, "2,4"), body.parameter(element, "?,4" if grow else "2,4")
    weights = body.constant((rng.standard_normal((4, 4)) / 2).astype(element.dtype))
    before = body.op("ReduceMax", seen, body.constant(np.array([0])), keep_dims=True) if read else None
    y = body.op("MatMul", x if before is None else body.op("Add", x, before), weights)
    y = body.op("Tanh", y)
    both = body.op("Concat", seen, y, axis=0) if grow else body.op("Add", seen, y)
    results = body.result(y), body.result(both)
    going = body.result(body.constant(np.bool_(True)))
    lines = (
        input_entry(2, x),
        input_entry(3, seen),
        output_entry(4, results[0]),
        output_entry(5, results[1]),
        output_entry(-1, going, purpose="execution_condition"),
    )
    xml = port_map(*lines) + back_edges((results[0], x), (results[1], seen)) + body.xml()
    start = rng.standard_normal((2, 4)).astype(element.dtype)
    inputs = [const(np.array(trips), et.i64), const(np.array(True), et.boolean), param(start), param(start)]
    return load(Case("Loop", "opset5", inputs, outputs=2, xml=xml, weights=bytes(body.weights))), start


@pytest.mark.parametrize(("grow", "read", "plans"), [(False, False, 1), (True, False, 1), (True, True, PLANS)])
def test_bodies_are_planned(grow: bool, read: bool, plans: int) -> None:
    """A body that reads a value that grows has other shapes in each iteration."""
    model, start = recurrence(3 * PLANS, grow=grow, read=read)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for _ in range(2):
        actual, expected = (c([start, start]) for c in (compiled, plain))
        for k in range(2):
            np.testing.assert_allclose(actual[k], expected[k], rtol=1e-5, atol=1e-6)
    whole = int(not grow)  # the graph itself, if its shapes do not depend on the body
    assert len(compiled._pools) == whole + plans


def test_limits_hold_in_bodies_that_are_planned() -> None:
    model, start = recurrence(10**9, grow=False)
    compiled = irload.compile_model(model, 1, limits=irload.Limits(iterations=50))
    with pytest.raises(irload.LimitExceeded, match="more than 50 iterations"):
        compiled([start, start])


def test_16_bit_floats_are_computed_in_f32_after_planned_parts() -> None:
    net = Net()
    x = net.op("Convert", net.input(2, 8), destination_type="f16")
    weights = (np.random.default_rng(1).standard_normal((8, 8)) / 3).astype(np.float16)
    rows = net.op("MatMul", x, net.constant(weights), transpose_a=False, transpose_b=False)
    at = net.op("NonZero", net.op("Abs", rows), version="opset3", output_type="i64")
    picked = net.op("GatherND", rows, net.transpose(at, 1, 0), version="opset8", batch_dims=0)
    third = net.constant(np.float16(1 / 3))
    y = net.op("Add", net.op("Multiply", net.op("Multiply", picked, third), third), third)
    model = net.model(y)
    data = values(net)
    product = data[0].astype(np.float16).astype(np.float64) @ weights.astype(np.float64)
    number = float(np.float16(1 / 3))
    expected = (product.ravel() * number * number + number).astype(np.float16)
    output = irload.compile_model(model, 1)(data)[0]
    assert output.dtype == np.float16
    assert (output == expected).mean() > 0.93  # a number may round the other way
    assert (irload.compile_model(model, 1, optimize=False)(data)[0] == expected).mean() < 0.9


def test_constants_of_16_bits_are_folded_in_f32() -> None:
    net = Net()
    rng = np.random.default_rng(2)
    raw = rng.standard_normal((8, 8)).astype(np.float16)
    ends = [net.constant(np.float16(v)) for v in (-2.0, 2.0, -2.0, 2.0)]
    weights = net.op("FakeQuantize", net.constant(raw), *ends, levels=255, auto_broadcast="numpy")
    x = net.op("Convert", net.input(4, 8), destination_type="f16")
    model = net.model(net.op("MatMul", x, weights, transpose_a=False, transpose_b=False))
    data = values(net)
    steps = np.rint((np.clip(raw.astype(np.float64), -2, 2) + 2) * 254 / 4)
    expected = data[0].astype(np.float16).astype(np.float64) @ (steps * 4 / 254 - 2)
    output = irload.compile_model(model, 1)(data)[0].astype(np.float64)
    np.testing.assert_allclose(output, expected, rtol=6e-4, atol=1e-5)


def test_more_axes_than_arrays_have_are_left_to_the_run() -> None:
    net = Net()
    model = net.model(net.op("Cos", net.input(*(1,) * 65)))
    compiled = irload.compile_model(model, 1)
    with pytest.raises(irload.InputInvalid, match=r"has shape \[\]; the model takes"):
        compiled(np.float32(1))


def test_a_loop_is_inferred_again_if_its_count_or_a_shape_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = irload.compile_model("models/loop/model.xml")
    inferred: list[int] = []
    infer = Loop.infer
    monkeypatch.setattr(Loop, "infer", lambda *args, **kwargs: inferred.append(1) or infer(*args, **kwargs))
    start = np.array([[1, -3]], np.float32)
    for count, times in ((3, 1), (3, 0), (0, 1), (5, 1), (5, 0), (3, 0)):
        inferred.clear()
        last, every = compiled([np.array(count), start]).values()
        assert last.tolist() == (start * 2**count).tolist()
        assert every.tolist() == [(start * 2 ** (k + 1))[0].tolist() for k in range(count)]
        assert len(inferred) == times
