"""Schedules: slots and their last use, reuse of inferred types, and the limits checked before a run."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.core.element import f32
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import LimitExceeded
from irload.inference import Inference
from irload.model import infer
from irload.plan import folding
from irload.plan.backends.numpy.executable import _merged
from irload.plan.folding import Folding
from irload.plan.interpreter import InterpreterRun
from irload.plan.schedule import Schedule
from irload.plan.scheduling import schedule_graph
from irload.plan.size_limits import require_size
from irload.safety.limits import Limits
from tests.plan.exact import Exact
from tests.plan.graphs import Net


def tensor(*shape: int) -> TensorType:
    return TensorType(f32, Shape(*shape))


def planned(net: Net, model: irload.Model, fold: bool = False, **limits: int) -> Schedule:
    types = [p.outputs[0].type for p in model.parameters]
    return schedule_graph(model, types, Folding() if fold else None, Limits(**limits))


def test_a_tensor_is_as_large_as_the_limit_at_most() -> None:
    require_size(tensor(5, 2), Limits(tensor_bytes=40))
    with pytest.raises(LimitExceeded, match="too large"):
        require_size(tensor(5, 2), Limits(tensor_bytes=39))


def test_an_empty_tensor_has_a_shape_that_numpy_holds() -> None:
    require_size(tensor(0, (1 << 61) - 1), Limits())
    require_size(tensor(0, 5), Limits())
    with pytest.raises(LimitExceeded, match="exceeds NumPy's largest array"):
        require_size(tensor(0, 1 << 61), Limits())
    with pytest.raises(LimitExceeded, match="exceeds NumPy's largest array"):
        require_size(tensor(1 << 61, 0), Limits())


def graph() -> tuple[Net, irload.Model]:
    """s = x + c, t = relu(s), results t · s and exp(c) + t."""
    net = Exact()
    x, c = net.input(2, 3), net.weights(2, 3)
    s = net.op("Add", x, c)
    t = net.op("ReLU", s)
    return net, net.model(net.op("Multiply", t, s), net.op("Add", net.op("Exp", c), t))


def test_slots_end_with_their_last_use() -> None:
    net, model = graph()
    schedule = planned(net, model)
    names = [s.node.type for s in schedule.nodes]
    assert names == ["Add", "ReLU", "Multiply", "Exp", "Add"]
    (c,) = (slot for slot, _ in schedule.constants)
    (x,) = schedule.parameters
    add, relu, times, exp, last = schedule.nodes
    assert add.inputs == (x, c)
    assert [set(s.last_use) for s in schedule.nodes] == [
        {x}, set(), set(add.outputs), set(), {*exp.outputs, *relu.outputs},
    ]  # fmt: skip
    assert schedule.results == (times.outputs[0], last.outputs[0])
    assert schedule.slots == 7
    assert all(s.known for s in schedule.nodes)
    assert schedule.is_static


def test_an_unused_output_is_released_at_once() -> None:
    net = Exact()
    first, _ = net.ops("Split", net.input(2, 4), net.constant(1), outputs=2, num_splits=2)
    schedule = planned(net, net.model(first))
    (split,) = schedule.nodes
    assert set(split.last_use) == {*schedule.parameters, split.outputs[1]}


def test_constants_are_folded() -> None:
    net, model = graph()
    schedule = planned(net, model, fold=True)
    assert [s.node.type for s in schedule.nodes] == ["Add", "ReLU", "Multiply", "Add"]
    assert len(schedule.constants) == 2


def test_folded_constants_are_read_only() -> None:
    net = Exact()
    model = net.model(net.op("Add", net.op("Exp", net.weights(100_000)), net.input(1)))
    ((_, constant),) = planned(net, model, fold=True).constants
    assert not constant.array.flags.writeable


def folded(model: irload.Model, **limits: int) -> int:
    """The operations that a plan evaluates at run time."""
    types = [p.outputs[0].type for p in model.parameters]
    return len(schedule_graph(model, types, Folding(), Limits(**limits)).nodes)


@pytest.mark.parametrize(("times", "steps"), [(8, 1), (9, 2)])
def test_constants_do_not_grow_without_bounds(times: int, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    net = Exact()
    wide = net.op("Tile", net.weights(100_000, 1), net.constant([1, times]))
    model = net.model(net.op("Add", net.op("Exp", wide), net.input(1)))
    monkeypatch.setattr(folding, "LARGE", 1)
    grown = folded(model)
    monkeypatch.setattr(folding, "LARGE", 1 << 22)
    assert folded(model) == 1
    assert (grown == 1) == (steps == 1)


def test_folding_respects_the_memory_limit() -> None:
    net = Exact()
    wide = [net.op("Tile", net.op("Exp", net.weights(100_000)), net.constant([2])) for _ in range(3)]
    model = net.model(*(net.op("Add", w, net.input(1)) for w in wide))
    left = [folded(model, peak_bytes=n) for n in (1 << 30, 3_600_000, 3_599_999, 2_400_000, 2_399_999, 1_300_000)]
    assert left == [3, 3, 4, 5, 5, 7]


def test_the_peak_of_a_plain_plan_is_reported_with_its_layer() -> None:
    net = Exact()
    x = net.input(1000)
    y = net.concat(net.op("Exp", x), net.op("Sin", x), axis=0)
    model = net.model(net.op("ReduceSum", y, net.constant([0]), keep_dims=False))
    planned(net, model, peak_bytes=1 << 20)
    with pytest.raises(LimitExceeded, match=r"Concat 'Concat_3'.*alive when this layer runs"):
        planned(net, model, peak_bytes=15_000)


def test_the_constants_alone_may_be_too_many() -> None:
    net = Exact()
    model = net.model(net.op("Add", net.input(1000), net.weights(1000)))
    with pytest.raises(LimitExceeded, match="the constants are too large"):
        planned(net, model, peak_bytes=3999)
    with pytest.raises(LimitExceeded, match="alive when this layer runs"):
        planned(net, model, peak_bytes=4000)


def test_a_tensor_that_is_too_large_is_reported_with_its_layer() -> None:
    net = Exact()
    model = net.model(net.op("Tile", net.input(10), net.constant([10])))
    planned(net, model, tensor_bytes=400)
    with pytest.raises(LimitExceeded, match="Tile 'Tile_2'"):
        planned(net, model, tensor_bytes=399)


def test_phases_of_one_part_are_merged() -> None:
    def call(name: str) -> tuple[object, tuple[str]]:
        return print, (name,)

    a, b, c, d, e, f = ([call(n)] for n in "abcdef")
    table = _merged([[a], [b], [c, d], [e], [f]])  # type: ignore[list-item]
    assert table == [[[*a, *b]], [c, d], [[*e, *f]]]
    assert _merged([[c, d], [a, b]]) == [[c, d], [a, b]]  # type: ignore[list-item]
    assert a == [call("a")], "merged outputs are copied"


def test_iterations_are_counted() -> None:
    class Scheduler:
        model = None
        limits = Limits(iterations=3)

    run = InterpreterRun(Scheduler(), {})  # type: ignore[arg-type]
    for _ in range(3):
        run.spend_iteration()
    with pytest.raises(LimitExceeded, match="more than 3 iterations"):
        run.spend_iteration()


def test_a_slot_is_released_after_its_last_use() -> None:
    net = Exact()
    y = net.input(1000)
    for _ in range(10):
        y = net.op("Exp", net.op("Negative", y))
    model = net.model(y)
    compiled = irload.compile_model(model, optimize=False, limits=Limits(peak_bytes=13_000))
    compiled(np.zeros(1000, np.float32))
    with pytest.raises(LimitExceeded):
        irload.compile_model(model, optimize=False, limits=Limits(peak_bytes=7_000))(np.zeros(1000, np.float32))


def inferences(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The types of the nodes that are inferred from now on."""
    seen: list[str] = []
    infer = Inference.node
    monkeypatch.setattr(Inference, "node", lambda self, node: seen.append(node.type) or infer(self, node))
    return seen


def test_inferred_types_are_reused(monkeypatch: pytest.MonkeyPatch) -> None:
    _, model = graph()
    seen = inferences(monkeypatch)
    compiled = irload.compile_model(model, 1, optimize=False)
    assert not seen
    (first, _) = compiled(np.ones((2, 3), np.float32)).values()
    assert first.shape == (2, 3)
    assert not seen


def test_a_model_that_was_changed_is_inferred_again(monkeypatch: pytest.MonkeyPatch) -> None:
    _, model = graph()
    relu = next(node for node in model.nodes if node.type == "ReLU")
    relu.op = next(node.op for node in model.nodes if node.type == "Exp")
    seen = inferences(monkeypatch)
    irload.compile_model(model, 1)
    assert len(seen) == len(model.nodes) - 2  # all but the Parameter and the constant


def test_other_shapes_and_other_limits_are_inferred(monkeypatch: pytest.MonkeyPatch) -> None:
    net = Exact()
    model = net.model(net.op("ReLU", net.input(-1, 3)))
    seen = inferences(monkeypatch)
    irload.compile_model(model, 1)(np.ones((2, 3), np.float32))
    assert seen == ["ReLU", "Result"]
    model.reshape([4, 3])
    seen.clear()
    irload.compile_model(model, 1, limits=Limits(tensor_bytes=1000))
    assert seen == ["ReLU", "Result"]


def test_a_fault_is_detected_repeatedly() -> None:
    net = Exact()
    model = net.model(net.op("Add", net.input(2, 3), net.weights(2, 3)))
    (parameter,) = model.parameters
    faults: list[irload.IRError] = []
    parameter.op = type(parameter.op)(**{**parameter.op.attributes, "shape": Shape(2, 4)})
    infer(model, lambda node, error: faults.append(error))
    assert len(faults) == 1
    with pytest.raises(irload.ShapeMismatch):
        irload.compile_model(model, 1)


@pytest.mark.parametrize(("layers", "expected"), [(2, False), (3, True)])
def test_few_layers_of_known_shapes_are_planned(layers: int, expected: bool) -> None:
    """Before layers whose shapes depend on values."""
    net = Net()
    x = net.input(2, 3)
    for _ in range(layers):
        x = net.op("Negative", x)
    model = net.model(net.op("NonZero", x, version="opset3", output_type="i64"))
    schedule = planned(net, model, fold=True)
    assert (schedule.part is not None) == expected
    assert [s.node.type for s in schedule.rest][-1] == "NonZero"
