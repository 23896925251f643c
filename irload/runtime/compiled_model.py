"""CompiledModel: inference on a model, with inputs bound to its ports, and results in the order of its outputs."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from irload.core.tensor import Array, TensorType
from irload.errors import (
    DeclaredDiffers,
    InputInvalid,
    IRError,
    LimitExceeded,
    Where,
    out_of_memory,
)
from irload.graph import Node, Port, with_printable_names
from irload.model import Model
from irload.options import CompileOptions, Options
from irload.plan.interpreter import InterpreterRun
from irload.plan.schedule import Schedule, State
from irload.plan.variables import Variables
from irload.runtime.families import BoundShape
from irload.runtime.inputs import InputBinding
from irload.runtime.plans import Plans
from irload.runtime.request import InferRequest, infer_once
from irload.runtime.requirements import require_known, require_variables
from irload.runtime.result import Result
from irload.runtime.traced import NotBound
from irload.runtime.variables import VariableState, read_nodes, state_of
from irload.validation.differences import RunDifferences, refusal
from irload.wording import counted

if TYPE_CHECKING:
    from irload.plan.profile import StepTime
    from irload.runtime.observation import Observe

__all__ = ["CompiledModel", "InferRequest", "Result", "VariableState", "compiled_with"]


class CompiledModel(Plans):
    """A compiled model. `inputs`, `outputs`: its Ports; `threads`: the number of threads.

    Call it with an array, a sequence in input order, or a dict by name, position or Port. Thread-safe for models
    without state; each request created by `create_infer_request` has a separate state. Usable in a forked child, too. A
    copy, shallow or deep, has separate plans and state, and shares the model and its weights.
    """

    def __init__(self, model: Model, threads: int | None = None, **options: Unpack[CompileOptions]) -> None:
        """The arguments are the same as for `compile_model` with a Model."""
        resolved = Options.of(options, threads, limits=model.limits)
        if resolved.mmap:
            raise InputInvalid("mmap requires a path; this model is already read")
        self._set_up(model, resolved)

    def _set_up(self, model: Model, options: Options) -> None:
        if options.strict and model.differences:
            raise refusal(model.differences)
        Plans.__init__(self, model, replace(options, file=model.file))
        self.inputs = model.inputs
        self.outputs = model.outputs
        self.threads = options.threads
        self._bind = InputBinding(self.inputs, wide=options.optimize)
        self._latest: tuple[Sequence[TensorType], RunDifferences | None, Schedule | BoundShape] | None = None
        """The input types of the last run, its comparison with the file, and its schedule or traced plan."""
        self._variables = Variables()
        """The variables between calls. Not an infer request, whose reference to this object would form a cycle."""
        if options.jit is not None or options.precision != "f32":
            from irload.plan.backends.registry import compiled_backend

            compiled_backend(options)  # raise now instead of in the first inference
        self._by_runs = RunDifferences(model, strict=options.strict)
        require_known(model)
        require_variables(model)

    def __repr__(self) -> str:
        return f"<CompiledModel of {self.model!r}, {counted(self.threads, 'thread')}>"

    def __copy__(self) -> CompiledModel:
        other = compiled_with(self.model, self._options)
        other._variables = Variables({name: array.copy() for name, array in self._variables.items()})  # noqa: SLF001
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
        """The ports whose declaration differs from the inferred type: detected while reading, then by runs."""
        return [*self.model.differences, *self._by_runs.differences]

    @property
    def warnings(self) -> list[str]:
        """The warnings of the model, with the `differences` detected by runs."""
        return [*self.model.warnings, *map(str, self._by_runs.differences)]

    @property
    def from_cache(self) -> bool:
        """True if all plans so far are from the cache of an earlier process, so that the model has not been read."""
        return False

    def __call__(self, inputs: Any = None) -> Result:
        """Run once; variables keep their values for the next call.

        Returns new arrays with the dtypes of the output ports. Raises InputInvalid for inputs that do not fit,
        ExecutionError if an operation fails, LimitExceeded, OutOfMemory, and with `strict` DeclaredDiffers if a port
        contradicts the types inferred from the shapes of these inputs.
        """
        result, self._variables = infer_once(self, inputs, self._variables)
        return result

    def create_infer_request(self) -> InferRequest:
        """Create a request with separate variables. Requests may run concurrently, one thread each."""
        return InferRequest(self)

    def input(self, key: str | int = 0) -> Port:
        """Return an input by position, tensor name or layer name. Raises InputInvalid."""
        return self.model.input(key)

    def output(self, key: str | int = 0) -> Port:
        """Return an output by position, tensor name or layer name. Raises InputInvalid."""
        return self.model.output(key)

    def prepare(self, inputs: Any = None) -> None:
        """Create the plan for the shapes of these inputs, so that the first inference on them is as fast as the next.

        `inputs`: as for a call. Without them, the plan is for the shapes of the model; if these are dynamic, this is a
        no-op. `compile_model` calls this method without inputs. Raises InputInvalid, LimitExceeded, OutOfMemory, and
        with `strict` DeclaredDiffers.
        """
        given = [p.output.type for p in self.inputs] if inputs is None else self._bound(inputs)[1]
        if not all(t.is_static for t in given):
            return
        with self._errors_located():
            shape = self._traced.find(given, self._differences_for(given)) if self._traced.applies else None
            if shape is not None:
                with suppress(NotBound):
                    self._traced.give_back(shape, self._traced.take(shape)[0])
                    return
            schedule = self.scheduled(given)
            if schedule.part is not None:
                self.give_back(schedule.part, self.take(schedule.part))
                self.keep_first(given, self._differences_for(given), schedule)

    @contextmanager
    def _errors_located(self) -> Generator[None]:
        """Convert MemoryError to OutOfMemory, and add the file to OutOfMemory and LimitExceeded."""
        try:
            yield
        except (MemoryError, LimitExceeded) as error:
            raise self._located(error) from None

    def _located(self, error: MemoryError | LimitExceeded) -> IRError:
        """Return an error of a run with the file; OutOfMemory for a MemoryError."""
        located = error if isinstance(error, LimitExceeded) else out_of_memory("for the model", error)
        return located.at(Where(self._options.file))

    def profile(self, inputs: Any = None, rounds: int = 5) -> list[StepTime]:
        """Return the steps of an inference in execution order, each with the median of its seconds over `rounds`.

        The inference starts from the current state, which does not change. Operations outside of plans are timed one
        by one. `inside` of a step with bodies lists the steps of the bodies. They are measured in separate runs, so
        that timing them does not slow down the step.
        """
        from irload.plan.profile import medians, with_bodies
        from irload.plan.timed_run import BodyRun, TimedRun

        arrays, given = self._bound(inputs)
        schedule = self.scheduled(given)
        variables = dict(self._variables)
        arrays = [*arrays, *self._state(variables)[1]]
        runs = [TimedRun(self, variables.copy()) for _ in range(rounds + 1)]
        for run in runs:
            run.run(schedule, arrays)
        steps = medians([run.steps for run in runs[1:]])
        if any(True for _ in self.model.subgraphs()):
            inside = [BodyRun(self, variables.copy()) for _ in range(rounds + 1)]
            for run in inside:
                run.run(schedule, arrays)
            steps = with_bodies(steps, self.model, [run.steps for run in inside[1:]])
        return steps

    def explain(self, inputs: Any = None) -> str:
        """Return a text that explains the plan: fusions, the selected kernels with reasons, and memory.

        `inputs`: as for a call. Without them, the plan is for the shapes of the model; raises InputInvalid if these are
        dynamic.
        """
        from irload.plan.explain import explain_interpreted, explain_plan, explain_rest

        given = [p.output.type for p in self.inputs] if inputs is None else self._bound(inputs)[1]
        if not all(t.is_static for t in given):
            raise InputInvalid("the model has dynamic inputs; pass inputs, or reshape it first")
        schedule = self.scheduled(given)
        if schedule.part is None:
            return with_printable_names(self.model, explain_interpreted(self.model, schedule, optimize=self.optimize))
        plan = self.take(schedule.part)
        self.give_back(schedule.part, plan)
        text = explain_plan(self.model, schedule, plan)
        others = self._traced.explained()
        parts = [text, *([explain_rest(schedule)] if schedule.remaining else []), *([others] if others else [])]
        return with_printable_names(self.model, "\n\n".join(parts))

    def observe(self, inputs: Any, observe: Observe) -> tuple[Array, ...]:
        """Run every layer, including layers of bodies, by its reference `compute`, and pass each to `observe`.

        States do not change. `inputs`: as for a call. Returns the results of the graph; raises the errors of a call and
        of `observe`.
        """
        from irload.runtime.observation import ObservedRun

        # Without `optimize`, layers that plans fold or fuse run and are observed, too.
        plain = CompiledModel(self.model, self.threads, optimize=False, limits=self.limits) if self.optimize else self
        arrays, given = plain._bound(inputs)  # noqa: SLF001
        run = ObservedRun(plain, dict(self._variables), observe)
        with plain._errors_located():  # noqa: SLF001
            return plain.execute(run, given, arrays)

    def intermediates(self, inputs: Any = None, layers: str | Sequence[str] = ()) -> Iterator[tuple[str, Array]]:
        """Yield the name and array of each output of each layer while the model runs by the reference `compute`.

        `inputs`: as for a call. `layers`: name patterns (`*`, `?`), by default all layers. `loop/body[2]/add` is a
        layer of a body in the third iteration, `split:1` the second output of a layer. Arrays are read-only, and the
        iterator holds no reference to previous arrays. The state does not change. Raises InputInvalid at the end of the
        run if no layer matches `layers`, and the errors of a call.
        """
        from irload.runtime.observation import as_patterns, values

        return values(lambda observe: self.observe(inputs, observe), as_patterns(layers))

    def _bound(self, inputs: Any) -> tuple[list[Array], list[TensorType]]:
        """Return the input arrays in order, converted to the types of the graph, and these types."""
        return self._bind(inputs)

    def execute(self, run: InterpreterRun, given: Sequence[TensorType], arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Return the results of the model's graph, by a plan if all shapes are known, otherwise node by node.

        Results of an f16 or bf16 graph that is computed in f32 are f32.
        """
        latest = self._latest
        if self._reads and run.uses_plans and self.optimize:
            return self._with_state(run, given, arrays)
        if latest is None or latest[0] is not given:
            differences = self._differences_for(given)
            uses_plans = self._traced.applies and run.uses_plans
            plan = self._traced.find(given, differences) if uses_plans else None
            if plan is None:
                plan = self.schedule(self.model, given, differences)
                if uses_plans:
                    self.keep_first(given, differences, plan)
            latest = self._latest = given, differences, plan
        run.differences, plan = latest[1:]
        try:
            return self._run_with(run, plan, arrays)
        except NotBound:
            plan = self.schedule(self.model, given, run.differences)
            self._latest = given, run.differences, plan
        return self._run_with(run, plan, arrays)

    def _with_state(
        self, run: InterpreterRun, given: Sequence[TensorType], arrays: Sequence[Array]
    ) -> tuple[Array, ...]:
        """Return the results of a model with variables, whose values are further inputs of its plan."""
        run.differences = self._differences_for(given)
        following = self._traced.next(given, run.differences, run.variables)
        if following is not None:
            with suppress(NotBound):
                return self._run_with(run, following[0], [*arrays, *following[1]])
        state, held = self._state(run.variables)
        shape = self._traced.find(given, run.differences, state) if self._traced.applies else None
        if shape is not None:
            with suppress(NotBound):
                return self._run_with(run, shape, [*arrays, *held])
        if state and held and self._traced.applies:  # planning each length takes longer than interpreting
            schedule = self.schedule(self.model, given, run.differences)
            if not all(t is None or schedule.types[n.outputs[0]].shape.contains(t.shape) for n, t in state.items()):
                schedule = schedule.unplanned()  # its plan is for the shapes of the initial values
            return self._run_with(run, schedule, arrays)
        return self._run_with(run, self.schedule(self.model, given, run.differences, state), [*arrays, *held])

    def _run_with(self, run: InterpreterRun, plan: Schedule | BoundShape, arrays: Sequence[Array]) -> tuple[Array, ...]:
        if isinstance(plan, BoundShape):
            shape = plan
            return run.run_assigning(lambda: self._traced.run(shape, arrays, run, wide=self.optimize))
        return run.run(plan, arrays, wide=self.optimize)

    def scheduled(self, given: Sequence[TensorType]) -> Schedule:
        """Return the schedule of the model's graph for these input types and the current variables."""
        return self.schedule(self.model, given, self._differences_for(given), self._state(self._variables)[0])

    def _state(self, variables: Mapping[str, Array]) -> tuple[State | None, list[Array]]:
        """Return the types of the variables (None if plans do not depend on them), and the values that are set."""
        state, held = state_of(self._reads, variables)
        return state if self.optimize else None, held

    @cached_property
    def _reads(self) -> list[Node]:
        """The ReadValue nodes whose values are inputs of plans."""
        return read_nodes(self.model)

    def _differences_for(self, given: Sequence[TensorType]) -> RunDifferences | None:
        """Return the object that compares types with the file, or None if inputs of these types need no comparison."""
        return self._by_runs if self._by_runs.applies_to(given) else None


def compiled_with(model: Model, options: Options) -> CompiledModel:
    """Compile a model with resolved options. Raises the errors of `CompiledModel`."""
    compiled = CompiledModel.__new__(CompiledModel)
    compiled._set_up(model, options)  # noqa: SLF001 - a second constructor
    return compiled
