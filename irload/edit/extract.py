"""Extracts the part of a model between given tensors."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from irload.core.element import dynamic
from irload.edit.draft import Draft
from irload.edit.points import Point, label, leaving
from irload.errors import InputInvalid
from irload.graph import Node, Output, Port
from irload.model import Model

__all__ = ["extract"]

Points = Point | Sequence[Point] | None


def extract(model: Model, inputs: Points = None, outputs: Points = None, *, at_constants: bool = False) -> Model:
    """The part of a model between tensors, with the layers and weights that its outputs depend on.

    - `inputs`: the tensors that become inputs, with their inferred types and shapes; by default the inputs of the model
      that the part depends on.
    - `outputs`: the tensors that become outputs; by default the outputs of the model.
    - `at_constants`: True also allows constants as `inputs`, for example weights that are supplied at run time.

    A tensor is selected by its name; by the name of its layer (`split:1` if the layer has several outputs); by
    `0:layer`, the tensor at an input of a layer; by a port of the model; or by a pattern such as `backbone/*`, which
    selects the tensors that leave the matching layers. `extract(model, None, x)` and `extract(model, x)` are the parts
    before and after x. Variables are kept if the part reads them.

    Raises InputInvalid for an unknown name, for an input that is a constant or on which no output depends, and if the
    part depends on an input of the model that `inputs` do not replace.
    """
    draft = Draft(model)
    cut = _cut(draft, inputs, at_constants=at_constants)
    part = _Part(draft, cut, _ends(draft, outputs))
    if inputs is not None:
        part.require_connected()
    return part.model()


def _listed(points: Points) -> Sequence[Point]:
    return () if points is None else (points,) if isinstance(points, str | Port) else points


def _ends(draft: Draft, points: Points) -> list[tuple[Output, Node | None]]:
    """The tensors that become outputs, with their Results if they are outputs of the model."""
    results = [(n.inputs[0], n) for n in draft.model.results if n.inputs]
    if points is None:
        return list(results)
    selected = {o: None for point in _listed(points) for o in leaving(draft, point)}
    by_tensor = dict(reversed(results))
    return [(o, by_tensor.get(o)) for o in selected]


def _cut(draft: Draft, points: Points, *, at_constants: bool) -> dict[Output, Point]:
    """The tensors that become inputs, with the points that select them."""
    cut: dict[Output, Point] = {}
    for point in _listed(points):
        for output in leaving(draft, point, with_constants=at_constants):
            if not at_constants and output.node in draft.constant_nodes:
                fact = f"'{label(output)}' depends on constants alone, so it cannot be an input of the part"
                raise InputInvalid(f"{fact}; at_constants=True (irrun --at-constants) allows that")
            if output.type.element is dynamic:
                raise InputInvalid(f"'{label(output)}' cannot be an input of the part: its element type is unknown")
            cut[output] = point
    return cut


class _Part:
    """The nodes between a cut and the tensors that become outputs."""

    def __init__(self, draft: Draft, cut: dict[Output, Point], ends: list[tuple[Output, Node | None]]) -> None:
        self.draft = draft
        self.cut = cut
        self.ends = ends
        self.reached: set[Output] = set()
        """The tensors of the cut on which the part depends."""
        self.readers: dict[Node, Node | None] = {}
        """The nodes of the part, each with a node that reads it; None if the tensor is an output."""
        self.sinks: list[Node] = []
        self._reach([o for o, _ in ends], None)
        while new := [n for n in draft.model.sinks if n not in self.readers and self._reads_variable(n)]:
            for sink in new:
                self.readers[sink] = None
                self._reach(sink.inputs, sink)
            self.sinks += new

    def _reach(self, outputs: Iterable[Output], reader: Node | None) -> None:
        """Add the nodes on which tensors depend, up to the cut."""
        pending = [(o, reader) for o in outputs]
        while pending:
            output, reader = pending.pop()
            if output in self.cut:
                self.reached.add(output)
            elif output.node not in self.readers:
                self.readers[output.node] = reader
                pending += [(i, output.node) for i in output.node.inputs]

    def _reads_variable(self, sink: Node) -> bool:
        """True if the part reads the variable that an Assign writes."""
        name = sink.op.attributes.get("variable_id")
        return any(n.type == "ReadValue" and n.op.attributes.get("variable_id") == name for n in self.readers)

    def require_connected(self) -> None:
        """Raise InputInvalid if no output depends on an input, or if the part depends on another input of the model."""
        used = {point for output, point in self.cut.items() if output in self.reached}
        for output, point in self.cut.items():
            if point not in used:
                ends = ", ".join(f"'{label(o)}'" for o, _ in self.ends[:4])
                raise InputInvalid(
                    f"no output of the part depends on '{label(output)}' (outputs: {ends}); "
                    f"select a tensor on which they depend, or outputs after '{label(output)}'"
                )
        for node in self.draft.model.parameters:
            if node in self.readers:
                raise InputInvalid(
                    f"the part depends also on the input '{node.name}' ({self._path(node)}); "
                    f"add '{node.name}', or a tensor between it and the outputs, to the inputs of the part"
                )

    def _path(self, node: Node) -> str:
        """The layers from a node to an output, shortened."""
        path = [f"Parameter '{node.name}'"]
        reader = self.readers[node]
        while reader is not None:
            path.append(f"{reader.type} '{reader.name}'")
            reader = self.readers[reader]
        return " → ".join(path if len(path) < 7 else [*path[:3], "…", *path[-2:]])

    def model(self) -> Model:
        """Return the part. Its inputs are in the order of the cut, without a cut in the order of the model."""
        draft, model = self.draft, self.draft.model
        results = [result for _, result in self.ends if result is not None]
        parameters = [n for n in model.parameters if n in self.readers]
        draft.keep({*self.readers, *results, *(o.node for o in self.reached if o.node in model.parameters)})
        model.parameters, model.results, model.sinks = parameters, results, self.sinks
        moved: dict[Output, Output] = {}
        for output in self.cut:
            if output not in self.reached:
                continue
            if output.node.type == "Parameter":
                model.parameters.append(output.node)
                continue
            names = output.names or {draft.tensor_name(label(output))}
            output.names = frozenset()
            moved[output] = draft.parameter(output.type, label(output), names).outputs[0]
        draft.rewire(moved)
        model.results = [
            result or draft.result(moved.get(output, output), label(output)) for output, result in self.ends
        ]
        return draft.finished()
