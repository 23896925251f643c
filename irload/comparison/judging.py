"""Judges each layer by its error on the same inputs, and by the error accumulated since the inputs of the model."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from irload.comparison.constants import ConstantErrors, constant_paths
from irload.comparison.gaps import Gaps
from irload.comparison.layer_error import Comparison, LayerError
from irload.comparison.measures import Measures, identical
from irload.comparison.sides import Sides
from irload.comparison.sources import Stream, output_name
from irload.comparison.tolerances import TYPES, at_edges, floor, is_constant_expression, sensitivity, tolerance
from irload.core.tensor import Array
from irload.graph import Graph, Node, Output
from irload.runtime.observation import Visit, chosen, matches

__all__ = ["Judging"]


class Judging:
    """Compares each layer as it runs, and collects the errors in a Comparison."""

    def __init__(
        self,
        sides: Sides,
        other: Stream,
        wanted: Mapping[str, float],
        patterns: Sequence[str],
        progress: Callable[[int], object] | None,
    ) -> None:
        self.sides, self.other, self.wanted, self.patterns, self._progress = sides, other, wanted, patterns, progress
        self.comparison = Comparison("", "", exact=sides.are_models)
        self.nodes: dict[str, Node] = {}
        """The node of each error, by its name."""
        self.has_chosen = False
        """Whether a layer matches `patterns`."""
        paths = constant_paths(sides.runner, sides.names)
        partners = sides.partners if any(a is not b for a, b in sides.matched.items()) else {}
        self.constants = ConstantErrors(sides.runner, partners, paths, wanted)
        self.unused = {p for p in wanted if p not in TYPES}
        """The patterns of tolerances that have matched no layer so far."""
        self._use(paths.values())
        a, b = ("B", "A") if sides.turned else ("A", "B")
        self.gaps = Gaps(partners, (sides.names, sides.other_names if partners else {}), (a, b))
        self._tainted: set[Output] = set()
        """Outputs whose shape differs on the other side, so that later layers have different inputs."""
        self._feeding = _feeding(sides.runner)

    def __call__(
        self, visit: Visit, freely: Sequence[Array | None], fault: str
    ) -> tuple[list[Array], list[Array | None]]:
        """Judge one layer. Returns its outputs for later layers in this run and in the free run."""
        here, there = list(visit.outputs), list(freely)
        is_chosen = chosen(visit, self.patterns)
        self.has_chosen |= is_chosen
        for entry in self.constants.pop_errors(visit.node):
            self._add(entry)
        if visit.node in self.constants.recast:
            return here, there
        self._use(name for name, *_ in visit.named())
        tainted = bool(fault) or any(self._is_tainted(o) for o in visit.node.inputs)
        for k, (name, _, array) in enumerate(visit.named()):
            theirs = self.other.take(name, visit.owner, wanted=self.sides.is_ours)
            output = visit.node.outputs[k] if k < len(visit.node.outputs) else None
            if theirs is None:
                self.comparison.unmatched += 1
                self._taint(output, tainted)
                continue
            entry = self._entry(visit, k, theirs, there[k], tainted)
            self._taint(output, array.shape != theirs.shape)
            if array.shape == theirs.shape:
                same = not (entry.own and entry.own.max_abs) and identical(array, theirs)
                # Equal bits become the same array, so later layers run once.
                here[k] = array if same else theirs.astype(array.dtype, copy=False)
                free = there[k]
                if free is not None and free is not here[k] and identical(free, here[k]):
                    there[k] = here[k]
            if is_chosen:
                if not entry.passed and not tainted:
                    self._explain(visit)
                self._add(entry, visit.node)
        return here, there

    def outputs(self, free: Sequence[Array]) -> None:
        """Judge the outputs of the model; `free` holds the outputs of the free run."""
        for entry in self.constants.pop_remaining_errors():
            self._add(entry)
        for k, (node, array) in enumerate(zip(self.sides.runner.results, free, strict=True)):
            source = node.inputs[0]
            label = self.sides.names[source.node]
            name = f"{label}:{source.index}" if len(source.node.outputs) > 1 else label
            if self.patterns and not any(matches(n, p) for p in self.patterns for n in (name, self.sides.names[node])):
                continue
            theirs = self.other.take(output_name(k), wanted=self.sides.is_ours)
            if theirs is not None:
                self._output(node, array, theirs, name)
                continue
            known = next((e for e in self.comparison.layers if e.name == name), None)
            if known is not None and known.total is not None:
                self.comparison.outputs.append(
                    replace(known, name=self.sides.names[node], operation="Result", own=None)
                )

    def _output(self, node: Node, array: Array, theirs: Array, name: str) -> None:
        element = node.inputs[0].type.element.name
        computed = self.sides.precision if element == "f32" else element
        allowed = self._tolerance(computed, theirs, name, self.constants.roundings.total() > 0)
        problem = _problem(array, theirs)
        least = 1.0 if element in ("i8", "u8") else 0.0
        total = None if problem else self.sides.measured(array, theirs, allowed, least)
        if problem and not self.comparison.passed and not self.sides.is_openvino:
            problem = ""  # inherited
        fields = (self.sides.names[node], "Result", node.id, element, array.shape, allowed, None, total)
        entry = LayerError(*fields, problem, inherited=not problem and total is None)
        if not entry.passed:
            for gap in self.gaps.before(node, ""):
                self._add(gap)
        self.comparison.outputs.append(entry)

    # -- one output ----------------------------------------------------------------------------------------------------

    def _entry(self, visit: Visit, k: int, theirs: Array, free: Array | None, tainted: bool) -> LayerError:
        """The errors of output `k` of a layer."""
        name, tensor, array = list(visit.named())[k]
        element = tensor.element.name
        computed = self.sides.precision if element == "f32" else element
        rounded = visit.node in self.constants.rounded or (self.sides.is_of_other_weights and _reads_halves(visit.node))
        allowed = self._tolerance(computed, theirs, name, rounded)
        fields = (name, visit.node.type, visit.node.id, element, array.shape, allowed)
        total = None
        if free is not None and not _problem(free, theirs):
            total = self.sides.measured(free, theirs, allowed)
        if tainted:
            return LayerError(*fields, None, total, inherited=True)
        problem = _problem(array, theirs)
        if problem:
            return LayerError(*fields, None, None, problem)
        own = self._own_error(visit, k, theirs, allowed, computed)
        if rounded and own.needed > self._tolerance(computed, theirs, name, False):
            self.constants.roundings["f16"] += self.sides.is_of_other_weights
        if free is array:
            total = own
        return LayerError(*fields, own, total)

    def _own_error(self, visit: Visit, k: int, theirs: Array, allowed: float, computed: str) -> Measures:
        """The error on the same inputs, without the effect of rounding."""
        array = visit.outputs[k]
        measures = self.sides.measured(array, theirs, allowed)
        if measures.passed:
            return measures
        if self.sides.are_models and self.gaps.reads_the_same(visit.node):
            # Both sides run the same code on the same inputs, so rounding explains nothing: i8 and u8 may differ by 1.
            return self.sides.measured(array, theirs, allowed, 1.0) if computed in ("i8", "u8") else measures
        moved = at_edges(visit, array, theirs, computed) if self.sides.rounds_elsewhere else theirs
        least = floor(visit, computed)
        measures = self.sides.measured(array, moved, allowed, least)
        if not measures.passed and self.sides.rounds_elsewhere:
            least += sensitivity(visit, k, self.sides.precision)
            measures = self.sides.measured(array, moved, allowed, least)
        return measures

    def _tolerance(self, element: str, theirs: Array, name: str, rounded: bool) -> float:
        allowed = tolerance(element, theirs, name, self.wanted)
        return max(allowed, tolerance("f16", theirs, name, self.wanted)) if rounded else allowed

    def _use(self, names: Iterable[str]) -> None:
        if self.unused:
            self.unused -= {p for name in names for p in self.unused if matches(name, p)}

    def _add(self, entry: LayerError, node: Node | None = None) -> None:
        if node is None and self.patterns and not any(matches(entry.name, p) for p in self.patterns):
            return
        if node is not None:
            self.nodes[entry.name] = node
        self.comparison.layers.append(entry)
        if self._progress is not None:
            self._progress(len(self.comparison.layers))

    def _explain(self, visit: Visit) -> None:
        """Add the cause of a divergence outside the layer: layers without a partner, results of its bodies."""
        path = visit.name[: len(visit.name) - len(self.sides.names[visit.node])]
        for gap in self.gaps.before(visit.node, path):
            self._add(gap)
        for name in visit.node.op.supplied:
            body = getattr(getattr(visit.node.op, name), "body", None)
            if isinstance(body, Graph) and all(
                e.passed for e in self.comparison.layers if e.name.startswith(visit.name)
            ):
                for result in body.results:
                    for gap in self.gaps.before_result(result, f"{visit.name}/{name}/"):
                        self._add(gap)

    # -- shapes that differ --------------------------------------------------------------------------------------------

    def _taint(self, output: Output | None, is_tainted: bool) -> None:
        if output is not None:
            (self._tainted.add if is_tainted else self._tainted.discard)(output)

    def _is_tainted(self, output: Output) -> bool:
        pending, seen = [output], {output}
        while pending:
            last = pending.pop()
            if last in self._tainted:
                return True
            fresh = set(self._feeding.get(last.node, ())) - seen
            seen |= fresh
            pending += fresh
        return False


def _feeding(model: Graph) -> dict[Node, list[Output]]:
    """The sources of each Parameter of a body: outputs outside the body, and outputs of the previous iteration."""
    sources: dict[Node, list[Output]] = {}
    for graph in model.walk():
        for node, name, body in graph.subgraphs():
            wiring = getattr(node.op, name)
            for line in wiring.inputs:
                if line.port is not None and line.port < len(node.inputs):
                    sources.setdefault(body.parameters[line.inner], []).append(node.inputs[line.port])
            for result, parameter in wiring.back_edges:
                sources.setdefault(body.parameters[parameter], []).append(body.results[result].inputs[0])
    return sources


def _reads_halves(node: Node) -> bool:
    """Whether a layer takes weights that are stored in f16."""
    return any(
        is_constant_expression(i.node)
        and i.node.type != "Const"
        and any(s.type.element.name == "f16" for s in i.node.inputs)
        for i in node.inputs
    )


def _problem(a: Array, b: Array) -> str:
    if a.shape != b.shape:
        return f"shape {list(a.shape)} against {list(b.shape)}"
    floats = [x.dtype.kind in "fV" for x in (a, b)]
    return f"type {a.dtype} against {b.dtype}" if floats[0] != floats[1] and "O" in a.dtype.kind + b.dtype.kind else ""
