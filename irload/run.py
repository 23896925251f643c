"""Running a model: inputs bound to its ports, results ordered as its outputs."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from irload.core.tensor import Array, TensorType
from irload.differences import RunDifferences, refusal
from irload.errors import (
    DeclaredDiffers,
    ExecutionError,
    InputInvalid,
    LimitExceeded,
    Where,
)
from irload.graph import Port, with_printable_names
from irload.inputs import Binding
from irload.machine import thread_count
from irload.model import Model
from irload.plan.backends.base import Options
from irload.plan.interpreter import Run, TimedRun
from irload.plan.schedule import Schedule
from irload.plans import Plans
from irload.request import InferRequest
from irload.result import Result
from irload.runnable import require_known, require_variables
from irload.safety import Limits
from irload.variables import VariableState

if TYPE_CHECKING:
    from irload.observation import Observe
    from irload.plan.profile import StepTime

__all__ = ["CompiledModel", "InferRequest", "Result", "VariableState"]


class CompiledModel(Plans):
    """A model ready to run. Call it with an array, a sequence in input order, or a dict by name or position.

    Thread-safe for models without state; each request made by `create_infer_request` has a state of its own. Works in
    a forked child, too. A copy, deep or not, has plans and a state of its own and shares the model and its weights.
    """

    def __init__(
        self,
        model: Model,
        threads: int | None = None,
        *,
        optimize: bool = True,
        precise: bool = False,
        tune: bool = False,
        jit: bool | None = None,
        precision: str = "f32",
        limits: Limits | None = None,
        strict: bool = False,
    ) -> None:
        limits = model.limits if limits is None else limits
        options = Options(thread_count(threads), precise, tune, jit, precision, limits, model.file)
        self._set_up(model, options, optimize=optimize, strict=strict)

    def _set_up(self, model: Model, options: Options, *, optimize: bool, strict: bool) -> None:
        if strict and model.differences:
            raise refusal(model.differences)
        Plans.__init__(self, model, options, optimize=optimize)
        self.inputs = model.inputs
        self.outputs = model.outputs
        self.threads = options.threads
        self._bind = Binding(self.inputs, wide=optimize)
        self._latest: tuple[Sequence[TensorType], RunDifferences | None, Schedule] | None = None
        """What was run last: the types of its inputs, what compares them with the file, the schedule."""
        self._own: InferRequest | None = None
        if options.jit is not None or options.precision != "f32":
            from irload.plan.backends.llvm.available import compiled_kernels

            compiled_kernels(options.jit, options.precision)
        self._by_runs = RunDifferences(model, strict=strict)
        require_known(model)
        require_variables(model)

    def __repr__(self) -> str:
        return f"<CompiledModel of {self.model!r}, {self.threads} thread{'' if self.threads == 1 else 's'}>"

    def __copy__(self) -> CompiledModel:
        other = CompiledModel.__new__(CompiledModel)
        options = replace(self._options, kept={})
        other._set_up(self.model, options, optimize=self.optimize, strict=self._by_runs.strict)
        if self._own is not None:
            other._own = InferRequest(other)
            other._own.variables = {name: array.copy() for name, array in self._own.variables.items()}
        return other

    def __deepcopy__(self, memo: dict[int, Any]) -> CompiledModel:
        return self.__copy__()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a CompiledModel cannot be pickled, as its plans are bound to the memory of this process; "
            "send the path of the model instead, and call compile_model there"
        )

    @property
    def differences(self) -> list[DeclaredDiffers]:
        """The ports that declare what was not inferred: those that reading found, then those that runs did."""
        return [*self.model.differences, *self._by_runs.found]

    @property
    def warnings(self) -> list[str]:
        """The warnings of the model, and what runs added to its `differences`."""
        return [*self.model.warnings, *map(str, self._by_runs.found)]

    def __call__(self, inputs: Any = None) -> Result:
        """Run once.

        Raises InputInvalid for inputs that do not fit, ExecutionError where an operation fails, and with `strict`
        DeclaredDiffers where the shapes of these inputs make a port untrue.
        """
        if self._own is None:
            self._own = self.create_infer_request()
        return self._own.infer(inputs)

    def create_infer_request(self) -> InferRequest:
        """A request with its own state."""
        return InferRequest(self)

    def input(self, key: str | int = 0) -> Port:
        """An input by position or name."""
        return self.model.input(key)

    def output(self, key: str | int = 0) -> Port:
        """An output by position or name."""
        return self.model.output(key)

    def prepare(self, inputs: Any = None) -> None:
        """Plan for the shapes of these inputs, so that the first inference on them takes no longer than the others.

        `inputs` as for a call; without them the plan is that for the shapes that the model states, and nothing is done
        where these are dynamic: a plan is then made for the first inputs of each shape. `compile_model` does so itself.
        Raises InputInvalid, LimitExceeded, ExecutionError where there is not enough memory, and with `strict`
        DeclaredDiffers.
        """
        given = [p.output.type for p in self.inputs] if inputs is None else self._bound(inputs)[1]
        if not all(t.is_static for t in given):
            return
        with self._errors_located():
            schedule = self.scheduled(given)
            if schedule.part is not None:
                self.give_back(schedule.part, self.take(schedule.part))

    @contextmanager
    def _errors_located(self) -> Generator[None]:
        """Lack of memory becomes an ExecutionError; limits that were exceeded name the file."""
        try:
            yield
        except MemoryError as error:
            raise ExecutionError(f"ran out of memory: {error}") from None
        except LimitExceeded as error:
            raise error.at(Where(self._options.file)) from None

    def profile(self, inputs: Any = None, rounds: int = 5) -> list[StepTime]:
        """The steps of an inference in the order in which they run, each with the median of its time over `rounds`.

        States stay as they are. What no plan runs is timed operation by operation, bodies with what runs them.
        """
        from irload.plan.profile import of_interpreted, of_plan

        arrays, given = self._bound(inputs)
        schedule = self.scheduled(given)
        steps: list[StepTime] = []
        if schedule.part is not None:
            by_slot = dict(zip(schedule.parameters, arrays, strict=True))
            taken, plan = [by_slot[k] for k in schedule.part.taken], self.take(schedule.part)
            steps = of_plan(plan, [plan.profile(taken, Run(self, {})) for _ in range(rounds + 1)][1:])
            self.give_back(schedule.part, plan)
        if schedule.rest:
            runs = [TimedRun(self, {}) for _ in range(rounds)]
            for run in runs:
                run.interpret(schedule, arrays)
            times = np.median([[seconds for *_, seconds in run.timed] for run in runs], 0)
            steps += [
                of_interpreted(scheduled, shapes, nbytes, float(seconds))
                for scheduled, (shapes, nbytes, _), seconds in zip(schedule.rest, runs[0].timed, times, strict=True)
            ]
        return steps

    def explain(self, inputs: Any = None) -> str:
        """The plan in words: what was fused, which kernels were chosen and why, and how much memory it takes.

        `inputs` as for a call; without them the plan is that for the shapes that the model states.
        Raises InputInvalid where these are dynamic.
        """
        from irload.plan.explain import explain_interpreted, explain_plan, explain_rest

        given = [p.output.type for p in self.inputs] if inputs is None else self._bound(inputs)[1]
        if not all(t.is_static for t in given):
            raise InputInvalid("the model has dynamic inputs; give some, or reshape it first")
        schedule = self.scheduled(given)
        if schedule.part is None:
            return with_printable_names(self.model, explain_interpreted(self.model, schedule, optimize=self.optimize))
        plan = self.take(schedule.part)
        self.give_back(schedule.part, plan)
        text = explain_plan(self.model, schedule, plan)
        return with_printable_names(
            self.model, "\n\n".join([text, *([explain_rest(schedule)] if schedule.rest else [])])
        )

    def observe(self, inputs: Any, observe: Observe) -> tuple[Array, ...]:
        """Run every layer by its own `compute`, bodies included, and show each to `observe`. States stay as they are.

        `inputs` as for a call. Returns the results of the graph; raises what a call raises, and what `observe` does.
        """
        from irload.observation import ObservedRun

        # What a plan has folded away is a layer, too.
        plain = CompiledModel(self.model, self.threads, optimize=False, limits=self.limits) if self.optimize else self
        arrays, given = plain._bound(inputs)
        run = ObservedRun(plain, {} if self._own is None else dict(self._own.variables), observe)
        with plain._errors_located():
            return plain.execute(run, given, arrays)

    def intermediates(self, inputs: Any = None, layers: str | Sequence[str] = ()) -> Iterator[tuple[str, Array]]:
        """The outputs of every layer by name, one after the other while the model runs, each by its own `compute`.

        `inputs` as for a call; `layers`: patterns of names (`*`, `?`), all by default. `loop/body[2]/add` names a layer
        of a body in its third iteration, `split:1` the second of several outputs. No array is kept for the next one,
        none can be written to, and states stay as they are. Raises what a call raises.
        """
        from irload.observation import as_patterns, values

        return values(lambda observe: self.observe(inputs, observe), as_patterns(layers))

    def _bound(self, inputs: Any) -> tuple[list[Array], list[TensorType]]:
        """The arrays of the inputs in their order, as the graph takes them, and their types."""
        return self._bind(inputs)

    def execute(self, run: Run, given: Sequence[TensorType], arrays: Sequence[Array]) -> tuple[Array, ...]:
        """The results of the model's graph: by a plan where every shape is known, else node by node.

        Those of a graph of f16 or bf16 that is computed in f32 are f32.
        """
        latest = self._latest
        if latest is None or latest[0] is not given:
            differences = self._differences_for(given)
            latest = self._latest = given, differences, self.schedule(self.model, given, differences)
        run.differences = latest[1]
        return run.run(latest[2], arrays, wide=self.optimize)

    def scheduled(self, given: Sequence[TensorType]) -> Schedule:
        """The schedule of the model's graph on inputs of these types."""
        return self.schedule(self.model, given, self._differences_for(given))

    def _differences_for(self, given: Sequence[TensorType]) -> RunDifferences | None:
        """What compares a run on such inputs with the file; None where the file says nothing about them."""
        return self._by_runs if self._by_runs.applies_to(given) else None
