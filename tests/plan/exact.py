"""Compares plans with `compute` bit by bit, on small multiples of 1/2, whose sums are exact in any order.

Every kernel that supports a step runs it, not only the preferred kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

import irload
from irload.core.tensor import Array
from irload.model import Model
from irload.plan.backends.llvm.target import host_target
from irload.plan.backends.numpy.executable import NumpyExecutable, shared_packing
from irload.plan.backends.numpy.tuning import Phases
from irload.plan.executor import Executor
from irload.plan.ir.program import Step
from irload.plan.memory.memory import Memory
from irload.plan.sanitizing import sanitizing
from irload.runtime.compiled_model import CompiledModel
from models import ir
from tests.plan.graphs import Net, close

INEXACT = {"winograd"}


class Exact(Net):
    """A net whose constants are halves between −2 and 2."""

    def weights(self, *shape: int) -> ir.Ref:
        return self.constant((self._rng.integers(-4, 5, shape) / 2).astype(np.float32))


class Choice:
    """Replaces the tuner: selects the k-th of the kernels that support each step."""

    def __init__(self, k: int) -> None:
        self.k = k
        self.available = 1
        """The largest number of kernels for one step."""

    def find(self, step: Step, memory: Memory, threads: int) -> str | None:
        """None, so that the caller passes the candidates to `learn`."""
        return None

    def learn(
        self,
        step: Step,
        memory: Memory,
        threads: int,
        kernels: Mapping[str, Callable[[], Phases]],
        run: Callable[[Phases], None],
    ) -> str:
        """The name of the kernel."""
        self.available = max(self.available, len(kernels))
        return list(kernels)[min(self.k, len(kernels) - 1)]

    def save(self) -> None:
        """A no-op."""


def inputs_of(shapes: Sequence[Sequence[int]], seed: int = 7) -> list[Array]:
    """Inputs: halves between −4 and 4."""
    rng = np.random.default_rng(seed)
    return [(rng.integers(-8, 9, shape) / 2).astype(np.float32) for shape in shapes]


def same(model: Model, shapes: Sequence[Sequence[int]], *, threads: Sequence[int] = (1, 3)) -> set[str]:
    """Check the plan against `compute`, with every NumPy kernel that supports its steps.

    Compiled kernels are checked as well if they are switched on. Returns the names of NumPy's.
    """
    inputs = inputs_of(shapes), inputs_of(shapes, 8)
    plain = irload.compile_model(model, optimize=False)
    expected = [list(plain(arrays).values()) for arrays in inputs]
    names: set[str] = set()
    for count in threads:
        k, available = 0, 1
        while k < available:
            choice = Choice(k)
            used, results = _run(model, inputs, count, choice)
            names |= used
            for actual, wanted in zip(results, expected, strict=True):
                for a, b in zip(actual, wanted, strict=True):
                    if used & INEXACT:
                        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-3 * float(np.std(b)))
                    else:
                        np.testing.assert_array_equal(a, b, f"{used} at {count} threads")
            k, available = k + 1, choice.available
        if host_target() is not None:
            compiled = irload.compile_model(model, count)
            for arrays, wanted in zip(inputs, expected, strict=True):
                for a, b in zip(compiled(arrays).values(), wanted, strict=True):
                    close(a, b, 1e-4)
    return names


def plan_of(model: Model, shapes: Sequence[Sequence[int]], threads: int = 1, choice: object = None) -> Executor:
    """The plan in NumPy that an inference on inputs of these shapes uses."""
    compiled = CompiledModel(model, threads, jit=False)  # plans at the first inference, with this choice
    shared_packing(compiled._shared, compiled._options).tuner = choice
    compiled(inputs_of(shapes))
    ((plan,),) = compiled._pools.values()
    return plan


def tables(plan: Executor) -> list[tuple[str, Phases]]:
    """The name and the phases of each kernel of a plan that NumPy alone runs."""
    (segment,) = plan.segments
    executable = segment.executable
    assert isinstance(executable, NumpyExecutable)
    return [(k.name, phases) for k, phases in zip(executable.kernels, executable.phases, strict=True)]


def kernels(model: Model, shapes: Sequence[Sequence[int]], threads: int = 1) -> list[str]:
    """The kernels of the plan, in order; views are skipped."""
    return [kernel.name for kernel in plan_of(model, shapes, threads).kernels]


def _run(
    model: Model, inputs: Sequence[Sequence[Array]], threads: int, choice: Choice
) -> tuple[set[str], list[list[Array]]]:
    with sanitizing():
        compiled = CompiledModel(model, threads, jit=False)  # plans at the first inference, with this choice
        shared_packing(compiled._shared, compiled._options).tuner = choice
        results = [list(compiled(arrays).values()) for arrays in inputs]
    return {b.name for plans in compiled._pools.values() for plan in plans for b in plan.kernels}, results
