"""Loops hold the plan of their body; carried values stay in its memory if the body can overwrite them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.errors import LimitExceeded
from irload.model import Model
from irload.plan.held_body import HeldBody
from irload.plan.sanitizing import sanitizing
from tests.harness.body import Body, Value, input_entry, output_entry

ROWS, WIDTH, TRIPS = 6, 6, 5

State = Callable[[Body, Value, Value], tuple[Value, Value]]
"""Takes a body, its state and its input x; returns the next state and a further value carried to the next x."""


def decayed(body: Body, state: Value, x: Value) -> tuple[Value, Value]:
    """state · ½ + x: each element is read before it is written."""
    return body.op("Add", body.op("Multiply", state, body.constant(np.float32(0.5))), x), x


def read_later(body: Body, state: Value, x: Value) -> tuple[Value, Value]:
    """The next x reads the state after the next state is written."""
    after = body.op("Tanh", body.op("MatMul", x, x))
    return body.op("Add", after, body.op("Sigmoid", after)), body.op("MatMul", state, after)


def transposed(body: Body, state: Value, x: Value) -> tuple[Value, Value]:
    """state + stateᵀ reads elements that were written before."""
    other = body.op("Transpose", state, body.constant(np.array([1, 0])))
    return body.op("Add", state, body.op("Multiply", other, body.constant(np.float32(0.1)))), x


def swapped(body: Body, state: Value, x: Value) -> tuple[Value, Value]:
    return body.op("Add", x, body.constant(np.float32(1))), state


def loop(update: State, element: et.ElementType = et.f32) -> Model:
    """A Loop that carries a state and x; it returns both, and the first row of the state of each iteration."""
    graph = Body(bytearray())
    body = Body(graph.weights)
    state, x = (body.parameter(element, f"{ROWS},{WIDTH}") for _ in range(2))
    after, following = update(body, state, x)
    zero, one = body.constant(np.array([0])), body.constant(np.array([1]))
    row = body.op("Slice", after, zero, one, one, zero, version="opset8")
    results = [body.result(v) for v in (after, following, row, body.constant(np.bool_(True)))]
    lines = (
        input_entry(2, state),
        input_entry(3, x),
        output_entry(4, results[0]),
        output_entry(5, results[1]),
        output_entry(6, results[2], axis=0),
        output_entry(-1, results[3], purpose="execution_condition"),
    )
    inputs = [graph.constant(np.array(TRIPS)), graph.constant(np.bool_(True))]
    inputs += [graph.parameter(element, f"{ROWS},{WIDTH}") for _ in range(2)]
    graph.loop(inputs, body, lines, [(results[0], state), (results[1], x)], 3)
    return irload.read_model(*graph.model())


def values(seed: int = 0) -> list[np.ndarray]:
    rng = np.random.default_rng(seed)
    return [(rng.standard_normal((ROWS, WIDTH)) / 3).astype(np.float32) for _ in range(2)]


@pytest.fixture(autouse=True)
def unsanitized() -> Iterator[None]:
    """Switch the sanitizer off, which plans without shared memory."""
    with sanitizing(False):
        yield


@pytest.fixture
def in_place(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """The results that stayed in the memory of each plan that was held."""
    held: list[list[int]] = []
    hold = HeldBody._hold

    def recorded(self: HeldBody, *arguments: Any) -> None:
        hold(self, *arguments)
        held.append(list(self._in_place))

    monkeypatch.setattr(HeldBody, "_hold", recorded)
    return held


@pytest.mark.parametrize("options", [{"jit": False}, {}], ids=str)
@pytest.mark.parametrize(
    ("update", "stays"), [(decayed, [0]), (read_later, []), (transposed, []), (swapped, [])], ids=lambda v: str(v)[:20]
)
def test_carried_values(update: State, stays: list[int], options: dict[str, bool], in_place: list[list[int]]) -> None:
    model = loop(update)
    compiled, plain = irload.compile_model(model, 1, **options), irload.compile_model(model, 1, optimize=False)
    for seed in range(3):
        for actual, expected in zip(compiled(values(seed)).values(), plain(values(seed)).values(), strict=True):
            np.testing.assert_allclose(actual, expected, rtol=2e-5, atol=1e-5)
    assert [0 in results for results in in_place] == [bool(stays)] * 3


def test_16_bit_values_are_rounded_in_each_iteration(in_place: list[list[int]]) -> None:
    def halved(body: Body, state: Value, x: Value) -> tuple[Value, Value]:
        return body.op("Multiply", state, x), x

    model = loop(halved, et.f16)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    feed = [array.astype(np.float16) for array in values()]
    for actual, expected in zip(compiled(feed).values(), plain(feed).values(), strict=True):
        np.testing.assert_array_equal(actual, expected)
    assert [0 in results for results in in_place] == [False]


def test_threads_hold_separate_plans() -> None:
    model = loop(decayed)
    compiled, plain = irload.compile_model(model, 1), irload.compile_model(model, 1, optimize=False)
    requests = [compiled.create_infer_request() for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda k: requests[k % 4].infer(values(k // 4 * 4 + k % 4))[0], range(4)))
    for k, actual in enumerate(found):
        np.testing.assert_allclose(actual, plain(values(k))[0], rtol=1e-5, atol=1e-6)


def test_the_plan_is_given_back_after_an_error() -> None:
    compiled = irload.compile_model(loop(decayed), 1, limits=irload.Limits(iterations=TRIPS - 1))
    for _ in range(3):
        with pytest.raises(LimitExceeded, match="iterations"):
            compiled(values())
    assert all(len(plans) == 1 for plans in compiled._pools.values())
