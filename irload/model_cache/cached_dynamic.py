"""A compiled model with dynamic shapes that runs stored plans, without its graph.

The first shape runs by its plan, if it is stored; others, by stored traced plans while their guards hold.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from irload.core.element import element
from irload.core.pause import uncollected
from irload.core.shape import UNRANKED
from irload.core.tensor import Array, TensorType
from irload.errors import DeclaredDiffers, IRError
from irload.graph import Node, Output, UnknownOp
from irload.model_cache.cached import Cached
from irload.model_cache.plan_files import PlanFiles
from irload.model_cache.ports import Document, light_model
from irload.model_cache.replica import Replicas
from irload.options import Options
from irload.plan.backends.base import SharedData
from irload.plan.backends.compiled import CompiledBackend, StoredInvalid
from irload.plan.folding import Folding, of_file
from irload.plan.interpreter import InterpreterRun
from irload.plan.ir.constant import Constant
from irload.plan.variables import Variables
from irload.runtime.compiled_model import CompiledModel
from irload.runtime.families import BoundShape
from irload.runtime.kept import PlanStore, restored, static_name
from irload.runtime.plans import with_facts
from irload.runtime.traced import NotBound, TracedPlans
from irload.runtime.variables import state_of
from irload.validation.differences import RunDifferences

if TYPE_CHECKING:
    from irload.plan.profile import StepTime
    from irload.plan.traced.template import Template
    from irload.read.weights import Weights
    from irload.runtime.observation import Observe


class CachedDynamicModel(Cached):
    """A compiled model with cached plans. The graph is read at the first shape that no plan serves.

    `files`: the plans; `weights`: the model's weights, to which traced plans refer.
    """

    def __init__(
        self,
        document: Document,
        options: Options,
        backend: CompiledBackend,
        files: PlanFiles,
        weights: Weights,
        read: Callable[[], CompiledModel],
    ) -> None:
        self._describe(document, options, read)
        self._files = files
        self._backend = backend
        self._first: tuple[Sequence[TensorType], str, Replicas | None] | None = None
        """The types of the first inputs, their name, and their plan if it is stored. Other inputs release the plan."""
        light, self._variable_nodes = light_model(document, self.inputs, options.file)
        self._comparison = RunDifferences(light, strict=options.strict)
        self._recent: tuple[Sequence[TensorType], RunDifferences | None, BoundShape | None] | None = None
        """Input types, comparison and bound plan of the last run. Set only for models without variables."""
        options_with_facts = with_facts(options, light, self._variable_nodes)
        plans = _Plans(files, weights)
        self._stored: TracedPlans | None = TracedPlans(
            light, self._variable_nodes, options_with_facts, plans.folding, {}, plans, traces=False
        )
        """The stored plans; None after a shape for which no stored plan is valid."""

    def prepare(self, inputs: Any = None) -> None:
        """Bind a stored plan to the shapes of these inputs; if no plan is valid, read the model and prepare it.

        No-op without inputs. Raises InputInvalid, LimitExceeded, OutOfMemory.
        """
        if inputs is None:
            return
        _, given = self._bound(inputs)
        if self._first_plan(given) is not None:
            return
        plans = None if self._variable_nodes else self._stored
        with self._errors_located(), suppress(NotBound):
            shape = None if plans is None else plans.find(given, self._compared(given))
            if shape is not None and plans is not None:
                plans.give_back(shape, plans.take(shape)[0])
                return
        self._read_for_other_shapes().prepare(inputs)

    def execute(self, run: InterpreterRun, given: Sequence[TensorType], arrays: Sequence[Array]) -> tuple[Array, ...]:
        """Run the model's graph by a stored plan that is valid for these shapes; otherwise read and run the model."""
        replicas = self._first_plan(given)
        if replicas is not None:
            return replicas.run(arrays, run)
        plans = self._stored
        if plans is not None:
            run.differences, shape, held = self._find_plan(plans, given, run.variables)
            if shape is not None:
                with suppress(NotBound):
                    return run.run_assigning(lambda: plans.run(shape, [*arrays, *held], run, wide=True))
            self._stored = self._recent = None
        whole = self._read_for_other_shapes()
        run.compiled = whole
        return whole.execute(run, given, arrays)

    @property
    def differences(self) -> list[DeclaredDiffers]:
        """The ports whose declaration differs from the inferred type, including differences detected by runs."""
        return super().differences if self._whole is None else self._whole.differences

    @property
    def warnings(self) -> list[str]:
        """The warnings of the model, with the `differences`."""
        return super().warnings if self._whole is None else self._whole.warnings

    def explain(self, inputs: Any = None) -> str:
        """Return a text that explains the plan; see `CompiledModel.explain`. Reads the model."""
        return self._with_variables().explain(inputs)

    def profile(self, inputs: Any = None, rounds: int = 5) -> list[StepTime]:
        """Return the steps of an inference with their times; see `CompiledModel.profile`. Reads the model."""
        return self._with_variables().profile(inputs, rounds)

    def observe(self, inputs: Any, observe: Observe) -> tuple[Array, ...]:
        """Run every layer and pass it to `observe`; see `CompiledModel.observe`. Reads the model."""
        return self._with_variables().observe(inputs, observe)

    def _with_variables(self) -> CompiledModel:
        """Return the complete CompiledModel, after setting its variables to the values in this object."""
        whole = self._completed()
        whole._variables = self._variables  # noqa: SLF001
        return whole

    def _read_for_other_shapes(self) -> CompiledModel:
        """Return the complete CompiledModel, which traces a plan for the first shape that it runs."""
        whole = self._completed()
        whole.expect_shapes()
        return whole

    def _first_plan(self, given: Sequence[TensorType]) -> Replicas | None:
        """Return the stored plan of the first shape; None for other shapes, and for models with variables.

        Another shape releases it: traced plans serve its shape, too, and their packed weights are separate.
        """
        if self._variable_nodes:
            return None
        if self._first is None:
            name, replicas = static_name(given), None
            with suppress(StoredInvalid, IRError, MemoryError), uncollected():
                plan = self._files.find_static(name)
                replicas = None if plan is None else Replicas(plan, self._options, self._backend)
            self._first = given, name, replicas
        types, name, replicas = self._first
        if types is given or static_name(given) == name:
            return replicas
        self._first = types, name, None
        return None

    def _compared(self, given: Sequence[TensorType]) -> RunDifferences | None:
        """Return the comparison of inferred types with the file, or None if these input types need none."""
        return self._comparison if self._comparison.applies_to(given) else None

    def _find_plan(
        self, plans: TracedPlans, given: Sequence[TensorType], variables: Variables
    ) -> tuple[RunDifferences | None, BoundShape | None, list[Array]]:
        """Return the comparison and the plan for inputs of these types, and the values of variables that it reads."""
        recent = self._recent
        if recent is not None and recent[0] is given:
            return *recent[1:], []
        compared = self._compared(given)
        if not self._variable_nodes:
            shape = plans.find(given, compared)
            self._recent = given, compared, shape
            return compared, shape, []
        following = plans.next(given, compared, variables)
        if following is not None:
            return compared, *following
        state, held = state_of(self._variable_nodes, variables)
        return compared, plans.find(given, compared, state), held


class _Plans:
    """`KeptPlans` without the graph of the model: each layer is represented by a node without inputs."""

    def __init__(self, store: PlanStore, weights: Weights) -> None:
        self.folding = Folding()
        self._store = store
        self._weights = weights
        self._nodes: dict[int, Node] = {}
        self._constants: dict[tuple[Any, ...], Constant] = {}

    def find(self, name: str, options: Options, shared: SharedData) -> Template | None:
        """Restore the plan with this name; None if it is missing or not valid."""
        stored = self._store.find(name)
        if stored is not None:
            for number, document in stored[0]["nodes"]:
                self._nodes.setdefault(number, _node(document))
        return restored(stored, self, options, shared)

    def keep(self, name: str, template: Template) -> None:
        """No-op: all plans are already stored."""

    def node(self, number: int) -> Node:
        """Return the node that represents a layer of the model."""
        return self._nodes[number]

    def constant(self, node: Node, tensor: TensorType, offset: int, size: int) -> Constant:
        """Return the constant of a Const."""
        key = offset, size, tensor.element, tensor.shape.static
        cached = self._constants.get(key)
        if cached is None:
            from irload.read.constants import StoredConstant

            data = StoredConstant(self._weights, offset, size, *key[2:])
            cached = self._constants[key] = of_file(data, data, tensor, (offset, size) if size else None)
        return cached


def _node(document: Sequence[Any]) -> Node:
    id, name, type, version, line, elements = document
    node = Node(id, name, UnknownOp(type, version or "opset1", {}), line=line, version=version)
    node.outputs += [Output(node, k, type=TensorType(element(each), UNRANKED)) for k, each in enumerate(elements)]
    return node
