"""The sanitizer on sound and on broken plans: what it poisons, when, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.backends.numpy import selection as binders
from irload.plan.backends.numpy.kernels.calls import Part
from irload.plan.backends.numpy.selection.selector import Binder, _table  # pyright: ignore[reportPrivateUsage]
from irload.plan.executor import Executor, Shared
from irload.plan.ir.program import PlanInvalid, Program, Value
from irload.plan.ir.steps import Elementwise
from irload.plan.sanitizer import is_on, sanitizing
from tests.plan.programs import mapped, random, value


def test_it_is_switched_on_and_back() -> None:
    with sanitizing(False):
        assert not is_on()
        with sanitizing():
            assert is_on()
            with sanitizing(False):
                assert not is_on()
            assert is_on()
        assert not is_on()
        with pytest.raises(KeyError), sanitizing():
            raise KeyError
        assert not is_on()


@pytest.mark.parametrize("told", ["1", "0", ""])
def test_the_environment_switches_it_on(told: str) -> None:
    command = "from irload.plan.sanitizer import is_on; print(is_on())"
    env = {**os.environ, "IRLOAD_PLAN_SANITIZER": told}
    found = subprocess.run([sys.executable, "-c", command], env=env, capture_output=True, text=True, check=True)
    assert found.stdout.strip() == str(told == "1")


class Chain:
    """a = relu(x), b = a + x, c = b + a, whose steps note what memory holds when they run."""

    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, broken: Callable[[Elementwise, Binder], Part] | None = None
    ) -> None:
        self.x = value(2, 3)
        first = mapped("relu", self.x)
        second = mapped("add", first.output, self.x)
        third = mapped("add", second.output, first.output)
        self.steps = [first, second, third]
        self.seen: dict[int, list[Array]] = {}
        self.scratch: Array | None = None
        assert binders  # which fill the table
        plain = _table[Elementwise]

        def bind(step: Elementwise, binder: Binder) -> tuple[str, list[list[Part]]]:
            if broken is not None and step is second:
                return "broken", [[broken(step, binder)]]
            if self.scratch is None:
                self.scratch = binder.scratch.take((5,))
            name, phases = plain(step, binder)
            k = self.steps.index(step)
            return name, [[[(self._note, (k, binder.storage))]], *phases]

        monkeypatch.setitem(_table, Elementwise, bind)
        self.plan = Executor(Program(self.steps, [self.x], [third.output]), 1, Shared())

    def _note(self, k: int, storage: object) -> None:
        values = [self.x, *(s.output for s in self.steps)]
        self.seen[k] = [storage.view(v).copy() for v in values]  # type: ignore[attr-defined]
        assert self.scratch is not None
        self.seen[k].append(self.scratch.copy())
        self.scratch.fill(0)


def test_memory_is_poison_before_it_is_made_and_after_its_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain(monkeypatch)
    x = np.abs(random(2, 3))
    np.testing.assert_array_equal(chain.plan.run([x])[0], 3 * x)
    alive = {0: ["x"], 1: ["x", "a"], 2: ["a", "b"]}
    values = {"x": x, "a": x, "b": 2 * x}
    for k, seen in chain.seen.items():
        assert np.isnan(seen[-1]).all(), "scratch"
        for name in alive[k]:
            np.testing.assert_array_equal(seen[("x", "a", "b").index(name)], values[name])
    assert np.isnan(chain.seen[0][1]).all(), "a is not made yet"
    assert np.isnan(chain.seen[0][2]).all(), "nor is b"
    result = chain.plan.storage.view(chain.steps[-1].output)
    left = [chain.plan.storage.view(v) for v in (chain.x, *(s.output for s in chain.steps))]
    left = [view for view in left if not np.shares_memory(view, result)]
    assert left
    assert all(np.isnan(view).all() for view in left), "nothing is left after the run"


@pytest.mark.parametrize(("dtype", "poison"), [("i4", -0x7E7E7E7F), ("u1", 0x81), ("?", 0x81), ("f2", np.nan)])
def test_poison_of_every_type(dtype: str, poison: float) -> None:
    x, y = Value((4,), np.dtype(dtype)), value(2, 3)
    step = mapped("relu", y)
    plan = Executor(Program([step], [x, y], [step.output]), 1, Shared())
    assert plan._sanitizer is not None
    plan.storage.view(x).fill(0)
    plan._sanitizer._poison([x])
    found = plan.storage.view(x)
    np.testing.assert_array_equal(found.view("u1") if dtype == "?" else found, poison)


def test_a_step_that_writes_to_another_step_s_input_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain(monkeypatch, lambda step, binder: [(binder.view(step.inputs[0]).fill, (1,))])
    with pytest.raises(PlanInvalid, match=r"step 1, Elementwise .* changes .* still needed"):
        chain.plan.run([random(2, 3)])


def test_a_step_may_change_what_is_needed_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(step: Elementwise, binder: Binder) -> Part:
        a, x = (binder.view(v) for v in step.inputs)
        return [(np.add, (a, x, binder.view(step.output))), (x.fill, (0,))]

    chain = Chain(monkeypatch, bind)
    x = np.abs(random(2, 3))
    np.testing.assert_array_equal(chain.plan.run([x])[0], 3 * x)


@pytest.mark.parametrize("where", ["argument", "list", "method"])
def test_arrays_of_calls_lie_where_they_belong(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def bind(step: Elementwise, binder: Binder) -> Part:
        mine, out = np.zeros((2, 3), np.float32), binder.view(step.output)
        return {
            "argument": [(np.copyto, (out, mine))],
            "list": [(np.concatenate, ([mine, mine], 0))],
            "method": [(mine.fill, (0,))],
        }[where]

    with pytest.raises(PlanInvalid, match="neither in the buffers"):
        Chain(monkeypatch, bind)


def test_arrays_of_other_steps_do_not_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    third: list[Value] = []

    def bind(step: Elementwise, binder: Binder) -> Part:
        other = next(v for v in binder.storage._views if v.name == "far")
        third.append(other)
        return [(np.copyto, (binder.view(step.output), binder.view(other)))]

    x = value(2, 3)
    far = Value((2, 3), np.dtype(np.float32), name="far")
    first, last = mapped("relu", x), mapped("add", far, x)
    monkeypatch.setitem(_table, Elementwise, lambda step, binder: ("far", [[bind(step, binder)]]))
    with pytest.raises(PlanInvalid, match="neither in the buffers"):
        Executor(Program([first, last], [x, far], [first.output, last.output]), 1, Shared())
    assert third


def test_an_input_of_the_caller_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    given = random(2, 3)
    chain = Chain(monkeypatch)
    part = chain.plan.bound[0].phases[0][0]
    part.append((given.fill, (0,)))
    with pytest.raises(PlanInvalid, match="changes an input of the caller"):
        chain.plan.run([given])
