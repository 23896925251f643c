"""Compares every port's declaration with its inferred type, when a model is read and for the shapes of each run.

A contradiction does not prevent a run, which uses the inferred types; it becomes a `DeclaredDiffers` among the
warnings.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice

from irload.core.tensor import UNKNOWN, TensorType
from irload.errors import DeclaredDiffers, Where
from irload.graph import Declared, Graph, Node, Output
from irload.model import Model
from irload.validation.declared import (
    FITS,
    Contradiction,
    TypeOf,
    compare,
    declares_static,
    judge,
    judge_input,
    own_type,
    repeats,
)

__all__ = ["RunDifferences", "note_differences", "refusal"]

KEPT = 10_000
"""Maximum number of differences recorded per model. If there are more, probably all its ports are wrong."""


def note_differences(model: Model) -> None:
    """Compare every port of an inferred model, and record differences and warnings."""
    search = _Search(model, at_runs=False)
    differences = (d for graph in model.walk() for d in search.graph(graph, own_type))
    model.differences = list(islice(differences, KEPT))
    model.compared = [p.outputs[0].type.shape for p in model.parameters if p.outputs]
    model.warnings += map(str, model.differences)


def refusal(differences: Sequence[DeclaredDiffers]) -> DeclaredDiffers:
    """Return one error for all differences: the first one and their count."""
    first, more = differences[0], len(differences) - 1
    ports = "1 more port differs" if more == 1 else f"{more} more ports differ"
    return DeclaredDiffers(f"{first.message}; {ports}" if more else first.message, first.where, first.port)


class RunDifferences:
    """Compares the ports of a model again if a run determines types that were unknown when the model was read.

    `differences` lists the additional differences. With `strict`, the first one is raised.
    """

    def __init__(self, model: Model, *, strict: bool) -> None:
        self.strict = strict
        self.differences: list[DeclaredDiffers] = []
        self._search = _Search(model, at_runs=True)
        self._model = model
        self._known = {(d.where, d.port) for d in model.differences}

    def applies_to(self, given: Sequence[TensorType]) -> bool:
        """True if the declarations apply to inputs of these types.

        Reshaping a model does not change its ports, so they declare nothing about other inputs.
        """
        return all(judge(declared, given[k]).shape != "differs" for k, declared in self._changed)

    @cached_property
    def _changed(self) -> list[tuple[int, Declared | None]]:
        """The inputs that accept shapes beyond their declarations: indices and declarations."""
        outputs = [p.outputs[0] for p in self._model.parameters]
        return [
            (k, o.declared) for k, o in enumerate(outputs) if o.declared is None or o.declared.shape != o.type.shape
        ]

    def compare_graph(self, graph: Graph, given: Sequence[TensorType], types: Mapping[Output, TensorType]) -> None:
        """Compare a graph, and its bodies, with the types inferred for these inputs."""
        if graph is self._model and [t.shape for t in given] == self._model.compared:
            return  # compared when the model was read

        def type_of(output: Output) -> TensorType:
            return types.get(output, UNKNOWN)

        for level in graph.walk():
            self._take(self._search.graph(level, type_of))

    def require_none(self, graph: Graph, given: Sequence[TensorType], types: Mapping[Output, TensorType]) -> None:
        """Raise DeclaredDiffers if `compare_graph` would find a difference that is not known yet."""
        other = RunDifferences(self._model, strict=True)
        other._known = self._known
        other.compare_graph(graph, given, types)

    def compare_outputs(self, node: Node, types: Sequence[TensorType]) -> None:
        """Compare the outputs of one node with the types inferred for its actual inputs."""
        for output, tensor in zip(node.outputs, types, strict=False):
            self._take(self._search.output(output, lambda o, t=tensor, k=output: t if o is k else UNKNOWN))

    def _take(self, differences: Iterator[DeclaredDiffers]) -> None:
        for difference in differences:
            key = difference.where, difference.port
            if key in self._known:
                continue
            if self.strict:
                raise difference
            if len(self.differences) < KEPT:
                self._known.add(key)
                self.differences.append(difference)


class _Search:
    """Compares the ports of a model with inferred types. Optimized for agreement, the common case.

    `at_runs`: a port without dims is accepted, because its rank may be known only at run time.
    """

    def __init__(self, model: Model, *, at_runs: bool) -> None:
        self._model = model
        self._at_runs = at_runs

    @cached_property
    def _static_file(self) -> bool:
        return not self._at_runs and declares_static(self._model)

    def graph(self, graph: Graph, type_of: TypeOf) -> Iterator[DeclaredDiffers]:
        """Yield the ports of the graph's layers that differ, in topological order."""
        for node in graph.nodes:
            fed = len(node.inputs) == len(node.declared_inputs)
            for k, declared in enumerate(node.declared_inputs if fed else ()):
                if not repeats(declared, node.inputs[k].declared):
                    yield from self._input(node, k, type_of)
            for output in node.outputs:
                if judge(output.declared, type_of(output)) is not FITS:
                    yield from self.output(output, type_of)

    def output(self, output: Output, type_of: TypeOf) -> Iterator[DeclaredDiffers]:
        """Yield the contradictions of an output port."""
        differs = compare(output, static_file=self._static_file, type_of=type_of)
        if differs and output.declared is not None:
            yield self._difference(output.node, "output", output.index, output.declared, type_of(output), differs)

    def _input(self, node: Node, index: int, type_of: TypeOf) -> Iterator[DeclaredDiffers]:
        source = node.inputs[index]
        judgement = judge_input(node, index, type_of(source))
        differs = Contradiction(judgement.element, judgement.shape == "differs")
        if differs:
            declared = node.declared_inputs[index]
            yield self._difference(node, "input", index, declared, type_of(source), differs)

    def _difference(
        self, node: Node, side: str, index: int, declared: Declared, inferred: TensorType, differs: Contradiction
    ) -> DeclaredDiffers:
        number = index if declared.port is None else declared.port
        port = f"{side} port {number}"
        wrong, right = list[str](), list[str]()
        if differs.element and declared.element is not None:
            wrong.append(declared.element.precision)
            right.append(inferred.element.precision)
        if differs.shape:
            wrong.append("no dims" if declared.dims is None else f"[{','.join(map(str, declared.dims))}]")
            right.append(str(inferred.shape))
        where = Where(self._model.file, declared.line or node.line, node.id, node.name, node.type)
        verb = "inferred" if side == "output" else "but is fed"
        return DeclaredDiffers(f"{port} declares {' '.join(wrong)}, {verb} {' '.join(right)}", where, port)
