"""Infer requests: inferences that share one state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from irload.core.tensor import Array
from irload.errors import LimitExceeded
from irload.graph import Node
from irload.plan.interpreter import InterpreterRun, apart
from irload.plan.variables import Variables
from irload.runtime.inputs import as_element
from irload.runtime.result import Result, owned
from irload.runtime.variables import VariableState
from irload.wording import printable

if TYPE_CHECKING:
    from irload.runtime.compiled_model import CompiledModel

__all__ = ["InferRequest", "infer_once"]


def infer_once(compiled: CompiledModel, inputs: Any, variables: Variables) -> tuple[Result, Variables]:
    """Run one inference that starts with these variables. Returns the results and the new variables."""
    arrays, given = compiled._bound(inputs)  # noqa: SLF001
    run = InterpreterRun(compiled, variables)
    ids = set(map(id, arrays))
    results: list[Array] = []
    try:
        with run.deadline:
            for port, array in zip(compiled.outputs, compiled.execute(run, given, arrays), strict=True):
                results.append(owned(as_element(port.element_type, array), ids))
                ids.add(id(results[-1]))
    except (MemoryError, LimitExceeded) as error:
        raise compiled._located(error) from None  # noqa: SLF001
    # The caller may change these arrays; the variables must not change with them.
    return Result(compiled.outputs, results), apart(run.variables, (*arrays, *results))


class InferRequest:
    """Inferences that share the values of the model's variables, separately from other requests.

    Not thread-safe: create a request per thread.
    """

    def __init__(self, compiled: CompiledModel) -> None:
        self.compiled = compiled
        self.variables = Variables()

    def __repr__(self) -> str:
        held = ", ".join(f"{name} {list(array.shape)}" for name, array in self.variables.items())
        return printable(f"<InferRequest of {self.compiled.model!r}{f', state {held}' if held else ''}>")

    def infer(self, inputs: Any = None) -> Result:
        """Run once, and set the variables for the next inference. `inputs`, results and errors: as for a call."""
        result, self.variables = infer_once(self.compiled, inputs, self.variables)
        return result

    def query_state(self) -> list[VariableState]:
        """Return the variables of the model, in file order."""
        reads: dict[str, Node] = {}
        for graph in self.compiled.model.walk():
            for node in graph.nodes:
                if node.type == "ReadValue" and node.reachable:
                    reads.setdefault(node.op.attributes["variable_id"], node)
        return [VariableState(self, node) for node in reads.values()]

    def reset_state(self) -> None:
        """Delete the values of all variables; the next inference starts from their initial values."""
        self.variables = Variables()
