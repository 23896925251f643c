"""Every layer of a run while it runs: its inputs, its outputs, and a name that says where in the bodies it stands."""

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
from irload.graph import Graph, Node
from irload.plan.interpreter import Run, Scheduler
from irload.plan.schedule import ScheduledNode

__all__ = ["Observe", "ObservedRun", "Visit", "as_patterns", "chosen", "labels", "matches", "values"]


@dataclass(frozen=True, slots=True, eq=False)
class Visit:
    """One layer that has just run.

    `name` is the layer's own, behind the bodies that lead to it: `loop/body[2]/add` is of the third iteration,
    `if/then_body/add` of a branch. The arrays must not be written to.
    """

    name: str
    node: Node
    inputs: Sequence[Array]
    types: Sequence[TensorType]
    outputs: Sequence[Array]

    def named(self) -> Iterator[tuple[str, TensorType, Array]]:
        """Each output with its name: that of the layer, with `:1` behind it where there are several."""
        several = len(self.outputs) > 1
        for k, (tensor, array) in enumerate(zip(self.types, self.outputs, strict=False)):
            yield f"{self.name}:{k}" if several else self.name, tensor, array


Observe = Callable[[Visit], Sequence[Array] | None]
"""Takes each layer that ran, in order. What it returns, unless None, are the outputs that later layers get instead."""


class ObservedRun(Run):
    """A run that shows every layer, those in bodies too, each after what it runs itself."""

    plans = False

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
        self._path = ""
        self._running: Node | None = None
        self._passes = 0

    def run_node(self, scheduled: ScheduledNode, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run one operation and show it."""
        outer = self._running, self._passes
        self._running, self._passes = scheduled.node, 0
        results = super().run_node(scheduled, inputs)
        self._running, self._passes = outer
        name = self._path + self._labels[scheduled.node]
        instead = self._observe(Visit(name, scheduled.node, inputs, self.outputs, results))
        return results if instead is None else tuple(instead)

    def run_body(self, body: Body, inputs: Sequence[Array]) -> tuple[Array, ...]:
        """Run a body, whose layers are named after the layer that runs it and the number of the iteration."""
        node, outer, iteration = self._running, self._path, self._passes
        if node is not None:
            bodies = {name: getattr(getattr(node.op, name), "body", None) for name in node.op.supplied}
            place = next((name for name, found in bodies.items() if found is body), "body")
            counted = f"[{iteration}]" if len(bodies) == 1 else ""
            self._path = f"{outer}{self._labels[node]}/{place}{counted}/"
        self._passes += 1
        results = super().run_body(body, inputs)
        self._path = outer
        return results


def labels(model: Graph) -> dict[Node, str]:
    """A name for every node, unlike the others of its graph: its own, with `#id` behind one that several share."""
    found: dict[Node, str] = {}
    for graph in model.walk():
        counts = Counter(node.name for node in graph.nodes)
        for node in graph.nodes:
            found[node] = node.name if node.name and counts[node.name] == 1 else f"{node.name or node.type}#{node.id}"
    return found


def as_patterns(layers: str | Sequence[str]) -> tuple[str, ...]:
    """One pattern or several of the names of layers."""
    return (layers,) if isinstance(layers, str) else tuple(layers)


def matches(name: str, pattern: str) -> bool:
    """Whether a name is the pattern itself, or one that its `*` and `?` stand for."""
    return name == pattern or fnmatchcase(name, pattern)


def chosen(visit: Visit, patterns: Sequence[str]) -> bool:
    """Whether a layer is meant by one of the patterns, which are of its name with or without its bodies; or by none."""
    return not patterns or any(matches(name, p) for p in patterns for name in (visit.name, visit.node.name))


class _Stopped(BaseException):
    """Ends a run of which no more is wanted. No Exception, as operations turn those into errors of the model."""


def values(
    run: Callable[[Observe], object], patterns: Sequence[str], *, ahead: int = 0
) -> Generator[tuple[str, Array]]:
    """The outputs of the chosen layers by name, while they are made: the run waits until the next one is asked for.

    `run` runs a model and shows its layers to what it is given. The arrays cannot be written to. `ahead`: bytes that
    may be made before they are asked for; waiting for each array takes longer than a small layer.
    """
    # The run goes on in a thread, as bodies are run by operations, which a generator cannot leave.
    asked: SimpleQueue[bool] = SimpleQueue()
    made: SimpleQueue[list[tuple[str, Array]] | BaseException | None] = SimpleQueue()
    waiting: list[tuple[str, Array]] = []
    size = 0

    def observe(visit: Visit) -> None:
        nonlocal waiting, size
        for name, _, array in visit.named() if chosen(visit, patterns) else ():
            view = array.view()
            view.flags.writeable = False
            waiting.append((name, view))
            size += array.nbytes
            if size >= ahead:
                made.put(waiting)
                waiting, size = [], 0
                if not asked.get():
                    raise _Stopped

    def work() -> None:
        end: BaseException | None = None
        try:
            run(observe)
        except BaseException as error:
            end = error
        made.put(waiting)
        made.put(end)

    thread = Thread(target=copy_context().run, args=(work,), name="irload-intermediates", daemon=True)
    thread.start()
    try:
        while (found := made.get()) is not None:
            if isinstance(found, BaseException):
                raise found
            while found:
                yield found.pop(0)
            del found  # nothing of a layer stays alive here while the next one runs
            asked.put(True)
    finally:
        asked.put(False)
        thread.join()
