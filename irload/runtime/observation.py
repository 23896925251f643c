"""Observes each layer of a run: its inputs, its outputs, and its name, including the path of bodies."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextvars import copy_context
from dataclasses import dataclass
from fnmatch import fnmatchcase
from queue import SimpleQueue
from threading import Thread

from irload.core.subgraph import Body
from irload.core.tensor import Array, TensorType
from irload.errors import InputInvalid
from irload.graph import Graph, Node
from irload.plan.interpreter import InterpreterRun, Scheduler
from irload.plan.schedule import ScheduledNode

__all__ = ["Observe", "ObservedRun", "Visit", "as_patterns", "chosen", "labels", "matches", "values"]


@dataclass(frozen=True, slots=True, eq=False)
class Visit:
    """One layer that has just run.

    `name` is the path of bodies, followed by the layer's name: `loop/body[2]/add` is in the third iteration,
    `if/then_body/add` in a branch. `owner` is the name of the layer whose body contains this layer, "" outside of
    bodies. The arrays must not be written to.
    """

    name: str
    node: Node
    inputs: Sequence[Array]
    types: Sequence[TensorType]
    outputs: Sequence[Array]
    owner: str = ""

    def named(self) -> Iterator[tuple[str, TensorType, Array]]:
        """Yield the name, type and array of each output. The index is appended to the name of several: `split:1`."""
        several = len(self.outputs) > 1
        for k, (tensor, array) in enumerate(zip(self.types, self.outputs, strict=False)):
            yield f"{self.name}:{k}" if several else self.name, tensor, array


Observe = Callable[[Visit], Sequence[Array] | None]
"""Called with each layer, in execution order. If it returns arrays, later layers read them instead of the outputs."""


class ObservedRun(InterpreterRun):
    """A run that passes each layer to an observer. Layers of bodies are included, before the layer that runs them."""

    uses_plans = False
    holds_plans = False

    def __init__(
        self,
        compiled: Scheduler,
        variables: dict[str, Array],
        observe: Observe,
        names: Mapping[Node, str] | None = None,
    ) -> None:
        super().__init__(compiled, variables)
        self._observe = observe
        self._labels = labels(compiled.model) if names is None else names
        self._path = self._owner = ""
        self._running: Node | None = None
        self._passes = 0

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run one operation and pass it to the observer."""
        outer = self._running, self._passes
        self._running, self._passes = scheduled.node, 0
        results = super().run_node(scheduled, inputs)
        self._running, self._passes = outer
        name = self._path + self._labels[scheduled.node]
        instead = self._observe(Visit(name, scheduled.node, inputs, self.outputs, results, self._owner))
        return results if instead is None else tuple(instead)

    def run_body(self, body: Body, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run a body. Names of layers in it start with the name of the layer that runs it and the iteration number."""
        node, outer, iteration = self._running, (self._path, self._owner), self._passes
        if node is not None:
            bodies = {name: getattr(getattr(node.op, name), "body", None) for name in node.op.supplied}
            body_name = next((name for name, inner in bodies.items() if inner is body), "body")
            counted = f"[{iteration}]" if len(bodies) == 1 else ""
            self._owner = f"{outer[0]}{self._labels[node]}"
            self._path = f"{self._owner}/{body_name}{counted}/"
        self._passes += 1
        results = super().run_body(body, inputs)
        self._path, self._owner = outer
        return results


def labels(model: Graph) -> dict[Node, str]:
    """Return a unique name for each node of a graph: its name, with `#id` appended if several nodes share it."""
    names: dict[Node, str] = {}
    for graph in model.walk():
        counts = Counter(node.name for node in graph.nodes)
        for node in graph.nodes:
            names[node] = node.name if node.name and counts[node.name] == 1 else f"{node.name or node.type}#{node.id}"
    return names


def as_patterns(layers: str | Sequence[str]) -> tuple[str, ...]:
    """Return one or several patterns of layer names as a tuple."""
    return (layers,) if isinstance(layers, str) else tuple(layers)


def matches(name: str, pattern: str) -> bool:
    """True if a name equals the pattern or matches its `*` and `?`."""
    return name == pattern or fnmatchcase(name, pattern)


def chosen(visit: Visit, patterns: Sequence[str]) -> bool:
    """True if a pattern matches the layer's name, with or without the path of bodies. Without patterns, always true."""
    return not patterns or any(matches(name, p) for p in patterns for name in (visit.name, visit.node.name))


def unmatched(patterns: Sequence[str]) -> InputInvalid:
    """Return the error for patterns that no layer of a run matches."""
    listed = ", ".join(f"'{p}'" for p in patterns)
    return InputInvalid(f"no layer that ran matches {listed}; irrun inspect --layers lists all layers")


class _Stopped(BaseException):
    """Ends a run early. Not an Exception, because an Exception in an operation becomes an error of the model."""


def values(
    run: Callable[[Observe], object], patterns: Sequence[str], *, ahead: int = 0
) -> Generator[tuple[str, Array]]:
    """Yield the outputs of the chosen layers by name as they are computed; the run pauses until the next is requested.

    `run` runs a model and calls the observer it is passed. The arrays are read-only. `ahead`: maximum bytes computed
    before they are requested; waiting for each array takes longer than a small layer. Raises InputInvalid at the end
    of the run if no layer matches `patterns`.
    """
    # The run needs a thread: operations call back to run bodies, and a generator cannot suspend inside a callback.
    requested: SimpleQueue[bool] = SimpleQueue()
    computed: SimpleQueue[list[tuple[str, Array]] | BaseException | None] = SimpleQueue()
    waiting: list[tuple[str, Array]] = []
    size = 0
    any_chosen = False

    def observe(visit: Visit) -> None:
        nonlocal waiting, size, any_chosen
        is_chosen = chosen(visit, patterns)
        any_chosen |= is_chosen
        for name, _, array in visit.named() if is_chosen else ():
            view = array.view()
            view.flags.writeable = False
            waiting.append((name, view))
            size += array.nbytes
            if size >= ahead:
                computed.put(waiting)
                waiting, size = [], 0
                if not requested.get():
                    raise _Stopped

    def work() -> None:
        end: BaseException | None = None
        try:
            run(observe)
            if patterns and not any_chosen:
                raise unmatched(patterns)
        except BaseException as error:
            end = error
        computed.put(waiting)
        computed.put(end)

    thread = Thread(target=copy_context().run, args=(work,), name="irload-intermediates", daemon=True)
    thread.start()
    try:
        while (batch := computed.get()) is not None:
            if isinstance(batch, BaseException):
                raise batch
            while batch:
                yield batch.pop(0)
            del batch  # drops all references to the layer's arrays before the next one runs
            requested.put(True)
    finally:
        requested.put(False)
        thread.join()
