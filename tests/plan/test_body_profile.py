"""The time of steps in bodies: summed over iterations, inside the step that runs the body."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.plan.profile import StepTime
from models.ir import Graph
from tests.cli.conftest import MODELS
from tests.inside.nets import model

LOOP = MODELS / "loop" / "model.xml"
INPUTS = [np.load(LOOP.parent / f"input_{k}.npy") for k in (0, 1)]


def spent(steps: list[StepTime]) -> list[tuple[str, ...]]:
    return [(s.operation, *(i.layer for i in s.inside)) for s in steps]


def test_a_loop_has_the_steps_of_its_body():
    compiled = irload.compile_model(LOOP, threads=1)
    (loop,) = compiled.profile(INPUTS)
    (doubled,) = loop.inside
    assert (doubled.operation, doubled.layer) == ("Add", "doubled")
    assert doubled.origin[0].name == "doubled"
    assert doubled.seconds > 0
    one, many = (compiled.profile([np.full_like(INPUTS[0], n), INPUTS[1]])[0].inside[0] for n in (1, 9))
    assert many.nbytes == 9 * one.nbytes


def test_a_loop_without_a_plan_is_profiled():
    steps = irload.compile_model(LOOP, threads=1, optimize=False).profile(INPUTS)
    assert ("Loop", "doubled") in spent(steps)


def test_results_and_states_stay_as_they_are():
    compiled = irload.compile_model(LOOP, threads=1)
    before = compiled(INPUTS)[0].copy()
    compiled.profile(INPUTS)
    np.testing.assert_array_equal(compiled(INPUTS)[0], before)


def nested() -> irload.Model:
    """A loop of 2 iterations around one of 3, with a Tanh in each."""
    g = Graph()
    x = g.parameter("x", "f32", [4])
    return model(
        g,
        _loop(
            g, x, 2, "outer", lambda b, v: _loop(b, _tanh(b, v, "slow"), 3, "inner", lambda c, w: _tanh(c, w, "fast"))
        ),
    )


def _tanh(g, x, name):
    return g.layer("Tanh", [x], [("f32", x.dims)], name=name)[0]


def _loop(g, x, count, name, inside):
    body = g.body()
    value = body.parameter("v", "f32", x.dims)
    end = body.result(inside(body, value))
    go = body.result(body.constant(np.array(True)))
    text = (
        f'<port_map><input external_port_id="2" internal_layer_id="{value.layer}"/>'
        f'<output external_port_id="-1" internal_layer_id="{go}" purpose="execution_condition"/>'
        f'<output external_port_id="3" internal_layer_id="{end}"/></port_map>'
        f'<back_edges><edge from-layer="{end}" to-layer="{value.layer}"/></back_edges><body>{body.text()}</body>'
    )
    ports = [g.constant(np.array(count)), g.constant(np.array(True)), x]
    return g.layer("Loop", ports, [("f32", x.dims)], version="opset5", name=name, inner=text)[0]


@pytest.mark.parametrize("optimize", [True, False])
def test_bodies_in_bodies(optimize):
    steps = irload.compile_model(nested(), threads=1, optimize=optimize).profile(np.ones(4, np.float32))
    (outer,) = [s for s in steps if s.operation == "Loop"]
    slow, inner = sorted(outer.inside, key=lambda s: s.operation != "Tanh")
    assert (slow.layer, inner.layer) == ("slow", "inner")
    (fast,) = inner.inside
    assert fast.layer == "fast"
    assert fast.nbytes == 3 * slow.nbytes  # the inner layer runs 6 times, the outer one 2 times
    assert slow.inside == fast.inside == ()
    assert inner.seconds >= fast.seconds or fast.seconds < 1e-3
