"""Two inferences over one file: from its operations alone, and from the declarations of all ports.

A wrong declaration is reported only at the port where it arises. For example, if an edit changed the shape of a
Parameter but no ports, all declarations are wrong, but each one agrees with the declarations of the preceding layers.
So a declaration is reported only if it contradicts both inferences.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from irload.core.subgraph import Body
from irload.core.tensor import UNKNOWN, TensorType
from irload.errors import IRError
from irload.graph import Graph, Node, Output, UnknownOp
from irload.inference import Inference
from irload.safety.limits import DEFAULT, Limits
from irload.validation.declared import judge


class ResilientInference(Inference):
    """Inference that continues after faults and records which results depend on them.

    `failed`: the nodes whose outputs have the declared types instead of inferred ones. `tainted`: these nodes and all
    nodes that depend on one of them; less may be inferred for them than in a correct file.
    """

    def __init__(self, file: str | None = None, limits: Limits = DEFAULT) -> None:
        super().__init__(file, self._note, limits)
        self.faults: list[tuple[Node, IRError]] = []
        self.failed: set[Node] = set()
        self.tainted: set[Node] = set()
        self._owners: list[Node] = []

    def _note(self, node: Node, error: IRError) -> None:
        self.faults.append((node, error))

    def check_output_ports(self, node: Node, count: int) -> None:
        """Accept surplus output ports, which rule IR410 reports."""

    def node(self, node: Node) -> None:
        if _lacks_inputs(node) or any(i not in self.types for i in node.inputs):
            # An edge is missing or is part of a cycle, so the other inputs would be assigned to the wrong ports.
            self.failed.add(node)
            self._take_declared(node)
        else:
            before = len(self.faults)
            self._owners.append(node)
            super().node(node)
            self._owners.pop()
            if any(n is node for n, _ in self.faults[before:]):
                self._fail(node)
            if isinstance(node.op, UnknownOp):
                self.failed.add(node)
        if node in self.failed or any(i.node in self.tainted for i in node.inputs):
            self.tainted.add(node)

    def _fail(self, node: Node) -> None:
        if node.type == "Const" and not isinstance(node.op, UnknownOp):  # its values are missing, but its type is known
            self.tainted.add(node)
        else:
            self.failed.add(node)

    def _take_declared(self, node: Node) -> None:
        for output in node.outputs:
            self.types[output] = declared_type(output, UNKNOWN)

    def infer_body(self, body: Body, inputs: Sequence[TensorType]) -> tuple[TensorType, ...]:
        graph, owner = cast(Graph, body), self._owners[-1]
        if any(i.node in self.tainted for i in owner.inputs):
            self.tainted.update(graph.parameters)
        results = super().infer_body(body, inputs)
        if any(r in self.tainted for r in graph.results):
            self.tainted.add(owner)
        return results


class DeclaredInference(ResilientInference):
    """Inference in which every output has its declared type, from which later layers are inferred.

    `unexplained` has the outputs whose declaration contradicts the declarations of the preceding layers.
    """

    def __init__(self, file: str | None = None, limits: Limits = DEFAULT) -> None:
        super().__init__(file, limits)
        self.unexplained: set[Output] = set()
        self._met: set[Output] = set()
        self._refuted: set[Output] = set()

    def node(self, node: Node) -> None:
        super().node(node)
        self._continue_as_declared(node)

    def graph(self, graph: Graph, given: Sequence[TensorType] | None = None) -> tuple[TensorType, ...]:
        if given is not None:
            for parameter, tensor in zip(graph.parameters, given, strict=True):
                self.types[parameter.outputs[0]] = tensor
                self._continue_as_declared(parameter)
            given = [self.types[p.outputs[0]] for p in graph.parameters]
        return super().graph(graph, given)

    def _continue_as_declared(self, node: Node) -> None:
        for output in node.outputs:
            inferred = self.types.get(output)
            if inferred is None:
                continue
            judgement = judge(output.declared, inferred)
            # A declaration that the first iteration of a loop contradicts stays wrong in later iterations.
            if output not in self._met and (judgement.element or judgement.shape == "differs"):
                self._refuted.add(output)
            self._met.add(output)
            if node not in self.failed and judgement.fits and output not in self._refuted:
                self.unexplained.discard(output)
            else:
                self.unexplained.add(output)
                self.types[output] = declared_type(output, inferred)


def declared_type(output: Output, otherwise: TensorType) -> TensorType:
    """The declared type of an output's port; `otherwise` completes missing parts."""
    declared = output.declared
    if declared is None:
        return otherwise
    return TensorType(
        declared.element or otherwise.element, otherwise.shape if declared.dims is None else declared.shape
    )


def _lacks_inputs(node: Node) -> bool:
    return len(node.inputs) < len(node.declared_inputs)
