"""Values that a loop only extends by Concat: their parts are joined once, after the last iteration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import openvino as ov
import pytest

import irload
from irload.core import element as et
from irload.core.subgraph import Accumulator
from irload.errors import IRError, LimitExceeded
from irload.graph import Graph
from irload.model import Model
from irload.ops.movement.concat import Concat
from irload.plan.accumulators import find_accumulators
from irload.safety.limits import Limits
from tests.harness.body import Body, back_edges, input_entry, output_entry, port_map
from tests.harness.runtime import core

ROWS, WIDTH = 2, 3


def growing(**options: Any) -> Model:
    """The model of `growing_ir`."""
    return irload.read_model(*growing_ir(**options))


def growing_ir(
    *,
    axis: int = 1,
    declared: str | None = None,
    read: Sequence[str] = (),
    first: bool = True,
    gathered: bool = False,
    trips: int = 4,
) -> tuple[str, bytes]:
    """A Loop that appends the first k + 1 columns of x to a value in iteration k. `read`: values read once more."""
    shape = f"{ROWS},?" if axis % 2 else f"?,{WIDTH}"
    graph = Body(bytearray())
    body = Body(graph.weights)
    counter = body.parameter(et.i64, "")
    past = body.parameter(et.f32, declared or shape)
    x = body.parameter(et.f32, f"{ROWS},{WIDTH}")
    more = body.op("Unsqueeze", counter, body.constant(np.array([0])))
    stop = body.op("Add", body.op("Mod", more, body.constant(np.array([WIDTH]))), body.constant(np.array([1])))
    along = body.constant(np.array([axis % 2]))
    one = body.constant(np.array([1]))
    part = body.op("Slice", x, body.constant(np.array([0])), stop, one, along, version="opset8")
    joined = body.op("Concat", *((past, part) if first else (part, past)), axis=axis)
    carried = body.result(joined)
    results = [carried, body.result(body.constant(np.bool_(True)))]
    lines = [
        input_entry(-1, counter, purpose="current_iteration"),
        input_entry(2, past),
        input_entry(3, x),
        output_entry(-1, results[1], purpose="execution_condition"),
        output_entry(4, carried, **({"axis": 0} if gathered else {})),
    ]
    for k, name in enumerate(read):
        total = body.op("ReduceSum", {"past": past, "joined": joined}[name], body.constant(np.array([0, 1])))
        lines.append(output_entry(5 + k, body.result(total)))
    xml = port_map(*lines) + back_edges((carried, past)) + body.xml()
    data, start = graph.parameter(et.f32, f"{ROWS},{WIDTH}"), graph.parameter(et.f32, declared or shape)
    inputs = [graph.constant(np.array(trips)), graph.constant(np.bool_(True)), start, data]
    for output in graph.nested("Loop", "opset5", inputs, 1 + len(read), xml):
        graph.result(output)
    return graph.model()


def values(axis: int = 1, length: int = 1) -> list[np.ndarray]:
    rng = np.random.default_rng(length)
    start = (ROWS, length) if axis % 2 else (length, WIDTH)
    return [rng.standard_normal(shape).astype(np.float32) for shape in ((ROWS, WIDTH), start)]


def found(model: Model) -> Sequence[Accumulator]:
    (loop,) = (node for node in model.nodes if node.type == "Loop")
    assert isinstance(loop.op.body.body, Graph)
    return find_accumulators(loop.op.body)


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_equals_the_plain_run_and_the_runtime(axis: int) -> None:
    model = growing(axis=axis)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    xml, weights = growing_ir(axis=axis)
    runtime = core().compile_model(core().read_model(xml, ov.Tensor(np.frombuffer(weights, np.uint8))), "CPU")
    assert found(model) == (Accumulator(0, 1, axis),)
    for length in (1, 0, 5):
        (actual,) = compiled(values(axis, length)).values()
        (expected,) = plain(values(axis, length)).values()
        np.testing.assert_array_equal(actual, expected)
        np.testing.assert_array_equal(actual, runtime(values(axis, length))[0])


def test_no_iteration_reads_the_parts_of_the_previous_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    compute = Concat.compute

    def counted(self: Concat, *arrays: np.ndarray) -> np.ndarray:
        sizes.append(sum(a.size for a in arrays))
        return compute(self, *arrays)

    monkeypatch.setattr(Concat, "compute", counted)
    model = growing()
    irload.compile_model(model, 1, jit=False)(values())
    parts = [ROWS * n for n in (1, 2, 3, 1)]
    assert sorted(sizes) == sorted(parts)
    sizes.clear()
    irload.compile_model(model, 1, optimize=False)(values())
    assert sizes == [ROWS + sum(parts[: k + 1]) for k in range(4)]


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
        {"read": ["joined"]},
        {"first": False},
        {"declared": f"{ROWS},1..9"},
        {"gathered": True, "trips": 1},
    ],
    ids=str,
)
def test_others_are_extended_in_each_iteration(options: dict[str, Any]) -> None:
    model = growing(**options)
    assert found(model) == ()
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    for actual, expected in zip(compiled(values()).values(), plain(values()).values(), strict=True):
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


def test_parts_of_another_shape_are_errors() -> None:
    data, _ = values()
    with pytest.raises(IRError, match="Concat"):
        irload.compile_model(growing(declared="?,?"), 1)([data, np.zeros((ROWS + 1, 1), np.float32)])
