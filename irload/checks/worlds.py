"""Two inferences over one file: what is true, and what would be true if its ports told the truth.

A wrong claim is reported where it arises. When the shape that a Parameter states was changed and the ports were not,
all of them are wrong, but each follows from the one before: taken at its word, the first explains the others. So a
declaration is at fault when it contradicts what is inferred from the truth *and* what is inferred from the claims.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from irload.core.subgraph import Body
from irload.core.tensor import UNKNOWN, TensorType
from irload.declared import judge
from irload.errors import IRError
from irload.graph import Graph, Node, Output, UnknownOp
from irload.inference import Inference
from irload.safety import DEFAULT, Limits


class Truth(Inference):
    """Inference that goes on behind faults, and knows which results suffer from them.

    `failed` are the nodes whose outputs had to be taken as declared, `vague` those that depend on such a node: what was
    inferred of them may be less than what would be.
    """

    def __init__(self, file: str | None = None, limits: Limits = DEFAULT) -> None:
        super().__init__(file, self._note, limits)
        self.faults: list[tuple[Node, IRError]] = []
        self.failed: set[Node] = set()
        self.vague: set[Node] = set()
        self._owners: list[Node] = []

    def _note(self, node: Node, error: IRError) -> None:
        self.faults.append((node, error))

    def node(self, node: Node) -> None:
        if _is_starved(node) or any(i not in self.types for i in node.inputs):
            # An edge is missing, or lies on a cycle: what the other inputs say would be taken for the wrong ports.
            self.failed.add(node)
            self._claim_all(node)
        else:
            before = len(self.faults)
            self._owners.append(node)
            super().node(node)
            self._owners.pop()
            if any(n is node for n, _ in self.faults[before:]):
                self._failed(node)
            if isinstance(node.op, UnknownOp):
                self.failed.add(node)
        if node in self.failed or any(i.node in self.vague for i in node.inputs):
            self.vague.add(node)

    def _failed(self, node: Node) -> None:
        if node.type == "Const" and not isinstance(node.op, UnknownOp):  # its weights are missing, its type is known
            attributes = node.op.attributes
            for output in node.outputs:
                self.types[output] = TensorType(attributes["element_type"], attributes["shape"])
            self.vague.add(node)
        else:
            self.failed.add(node)

    def _claim_all(self, node: Node) -> None:
        for output in node.outputs:
            self.types[output] = claimed(output, UNKNOWN)

    def infer_body(self, body: Body, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        graph, owner = cast(Graph, body), self._owners[-1]
        if any(i.node in self.vague for i in owner.inputs):
            self.vague.update(graph.parameters)
        results = super().infer_body(body, inputs)
        if any(r in self.vague for r in graph.results):
            self.vague.add(owner)
        return results


class Claims(Truth):
    """Inference in which every output port is taken at its word. `unexplained` are the claims that do not follow."""

    def __init__(self, file: str | None = None, limits: Limits = DEFAULT) -> None:
        super().__init__(file, limits)
        self.unexplained: set[Output] = set()
        self._met: set[Output] = set()
        self._refuted: set[Output] = set()

    def node(self, node: Node) -> None:
        super().node(node)
        self._take_at_its_word(node)

    def graph(self, graph: Graph, given: Sequence[TensorType] | None = None) -> tuple[TensorType, ...]:
        if given is not None:
            for parameter, tensor in zip(graph.parameters, given, strict=True):
                self.types[parameter.outputs[0]] = tensor
                self._take_at_its_word(parameter)
            given = [self.types[p.outputs[0]] for p in graph.parameters]
        return super().graph(graph, given)

    def _take_at_its_word(self, node: Node) -> None:
        for output in node.outputs:
            inferred = self.types.get(output)
            if inferred is None:
                continue
            judgement = judge(output.declared, inferred)
            # What the first iteration of a loop refutes is not made true by what it hands to the next one.
            if output not in self._met and (judgement.element or judgement.shape == "differs"):
                self._refuted.add(output)
            self._met.add(output)
            if node not in self.failed and judgement.fits and output not in self._refuted:
                self.unexplained.discard(output)
            else:
                self.unexplained.add(output)
                self.types[output] = claimed(output, inferred)


def claimed(output: Output, otherwise: TensorType) -> TensorType:
    """The type that the port of an output claims, completed by another where it says nothing."""
    declared = output.declared
    if declared is None:
        return otherwise
    return TensorType(
        declared.element or otherwise.element, otherwise.shape if declared.dims is None else declared.shape
    )


def _is_starved(node: Node) -> bool:
    return len(node.inputs) < len(node.declared_inputs)
