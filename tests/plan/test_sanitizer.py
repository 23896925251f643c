"""The sanitizer on valid and on broken plans: the memory that it poisons, and the faults that it reports."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest

from irload.core.tensor import Array
from irload.plan.backends.base import Options
from irload.plan.backends.numpy.selection import elementwise
from irload.plan.backends.numpy.selection.selector import NumpySelector
from irload.plan.executor import Executor
from irload.plan.ir.program import PlanInvalid, Program, Value
from irload.plan.ir.steps import ElementwiseStep
from irload.plan.memory.memory import Memory
from irload.plan.sanitizing import is_on, sanitizing
from irload.plan.threads import ThreadCalls
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


@pytest.mark.parametrize("setting", ["1", "0", ""])
def test_the_environment_switches_it_on(setting: str) -> None:
    command = "from irload.plan.sanitizing import is_on; print(is_on())"
    env = {**os.environ, "IRLOAD_PLAN_SANITIZER": setting}
    process = subprocess.run([sys.executable, "-c", command], env=env, capture_output=True, text=True, check=True)
    assert process.stdout.strip() == str(setting == "1")


class Chain:
    """a = relu(x), b = a + x, c = b + a, whose steps record the contents of memory when they run."""

    def __init__(
        self,
        monkeypatch: pytest.MonkeyPatch,
        broken: Callable[[ElementwiseStep, NumpySelector], ThreadCalls] | None = None,
    ) -> None:
        self.x = value(2, 3)
        first = mapped("relu", self.x)
        second = mapped("add", first.output, self.x)
        third = mapped("add", second.output, first.output)
        self.steps = [first, second, third]
        self.seen: dict[int, list[Array]] = {}
        self.scratch: Array | None = None
        plain = elementwise.elementwise

        def bind(step: ElementwiseStep, selector: NumpySelector) -> tuple[str, list[list[ThreadCalls]]]:
            if broken is not None and step is second:
                return "broken", [[broken(step, selector)]]
            if self.scratch is None:
                self.scratch = selector.scratch.take((5,))
            name, phases = plain(step, selector)
            k = self.steps.index(step)
            return name, [[[(self._note, (k, selector.memory))]], *phases]

        monkeypatch.setattr(elementwise, "elementwise", bind)
        self.plan = Executor(Program(self.steps, [self.x], [third.output]), Options(1))

    def _note(self, k: int, memory: Memory) -> None:
        values = [self.x, *(s.output for s in self.steps)]
        self.seen[k] = [memory.array(v).copy() for v in values]
        assert self.scratch is not None
        self.seen[k].append(self.scratch.copy())
        self.scratch.fill(0)


@pytest.mark.numpy_kernels
def test_memory_is_poisoned_before_its_first_and_after_its_last_use(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain(monkeypatch)
    x = np.abs(random(2, 3))
    np.testing.assert_array_equal(chain.plan.run([x])[0], 3 * x)
    alive = {0: ["x"], 1: ["x", "a"], 2: ["a", "b"]}
    values = {"x": x, "a": x, "b": 2 * x}
    for k, seen in chain.seen.items():
        assert np.isnan(seen[-1]).all(), "scratch"
        for name in alive[k]:
            np.testing.assert_array_equal(seen[("x", "a", "b").index(name)], values[name])
    assert np.isnan(chain.seen[0][1]).all(), "a is not computed yet"
    assert np.isnan(chain.seen[0][2]).all(), "nor is b"
    result = chain.plan.memory.array(chain.steps[-1].output)
    left = [chain.plan.memory.array(v) for v in (chain.x, *(s.output for s in chain.steps))]
    left = [view for view in left if not np.shares_memory(view, result)]
    assert left
    assert all(np.isnan(view).all() for view in left), "no value is left after the run"


@pytest.mark.parametrize(("dtype", "poison"), [("i4", -0x7E7E7E7F), ("u1", 0x81), ("?", 0x81), ("f2", np.nan)])
def test_poison_of_every_type(dtype: str, poison: float) -> None:
    x, y = Value((4,), np.dtype(dtype)), value(2, 3)
    step = mapped("relu", y)
    plan = Executor(Program([step], [x, y], [step.output]), Options(1))
    assert plan._sanitizer is not None
    plan.memory.array(x).fill(0)
    plan._sanitizer._poison([x])
    array = plan.memory.array(x)
    np.testing.assert_array_equal(array.view("u1") if dtype == "?" else array, poison)


@pytest.mark.numpy_kernels
def test_a_step_that_writes_to_a_live_input_is_detected(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = Chain(monkeypatch, lambda step, selector: [(selector.array(step.inputs[0]).fill, (1,))])
    with pytest.raises(PlanInvalid, match=r"step 1, ElementwiseStep .* changes .* still needed"):
        chain.plan.run([random(2, 3)])


def test_a_step_may_overwrite_a_dead_value(monkeypatch: pytest.MonkeyPatch) -> None:
    def bind(step: ElementwiseStep, selector: NumpySelector) -> ThreadCalls:
        a, x = (selector.array(v) for v in step.inputs)
        return [(np.add, (a, x, selector.array(step.output))), (x.fill, (0,))]

    chain = Chain(monkeypatch, bind)
    x = np.abs(random(2, 3))
    np.testing.assert_array_equal(chain.plan.run([x])[0], 3 * x)


@pytest.mark.parametrize("where", ["argument", "list", "method"])
@pytest.mark.numpy_kernels
def test_arrays_of_calls_must_be_in_bound_memory(monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    def bind(step: ElementwiseStep, selector: NumpySelector) -> ThreadCalls:
        mine, out = np.zeros((2, 3), np.float32), selector.array(step.output)
        return {
            "argument": [(np.copyto, (out, mine))],
            "list": [(np.concatenate, ([mine, mine], 0))],
            "method": [(mine.fill, (0,))],
        }[where]

    with pytest.raises(PlanInvalid, match="neither in the buffers"):
        Chain(monkeypatch, bind)


@pytest.mark.numpy_kernels
def test_arrays_of_other_steps_do_not_belong(monkeypatch: pytest.MonkeyPatch) -> None:
    x, far = value(2, 3), value(2, 3)
    first, last = mapped("relu", x), mapped("add", far, x)

    def select(step: ElementwiseStep, selector: NumpySelector) -> tuple[str, list[list[ThreadCalls]]]:
        return "far", [[[(np.copyto, (selector.array(step.output), selector.array(far)))]]]

    monkeypatch.setattr(elementwise, "elementwise", select)
    with pytest.raises(PlanInvalid, match="neither in the buffers"):
        Executor(Program([first, last], [x, far], [first.output, last.output]), Options(1))


@pytest.mark.numpy_kernels
def test_an_input_of_the_caller_is_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    x = random(2, 3)
    chain = Chain(monkeypatch)
    (segment,) = chain.plan.segments
    part = segment.executable.phases[0][0][0]  # type: ignore[attr-defined]
    part.append((x.fill, (0,)))
    with pytest.raises(PlanInvalid, match="changes an input of the caller"):
        chain.plan.run([x])
