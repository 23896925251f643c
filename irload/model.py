"""Model: the outer graph of a file with its metadata, and inference over it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from itertools import islice
from typing import Any

from irload.analysis.memory import constant_bytes
from irload.core.legacy import as_it_is, v10_input, v10_output
from irload.core.shape import Shape
from irload.errors import DeclaredDiffers, InputInvalid, IRError, UnknownOperation
from irload.graph import Graph, Node, Port, UnknownOp
from irload.inference import Inference, Inferred, OnError, ShapeLike, as_shape, raise_error
from irload.record import record
from irload.safety.integrity import Digests
from irload.safety.limits import DEFAULT, Limits
from irload.wording import printable

__all__ = ["Model", "infer", "require_model"]

REMARKS = 10_000
"""Maximum number of remarks stored for one model."""


@record(frozen=False, eq=False)
class Model(Graph):
    """A model: the outer graph, the file's header and metadata, and the warnings gathered while reading it."""

    name: str = ""
    ir_version: int = 11
    rt_info: dict[str, Any] = field(default_factory=dict[str, Any])
    warnings: list[str] = field(default_factory=list[str])
    differences: list[DeclaredDiffers] = field(default_factory=list[DeclaredDiffers])
    """The ports whose declaration differs from the inferred type. `warnings` includes them."""
    compared: list[Shape] = field(default_factory=list[Shape])
    """The input shapes for which `differences` was computed."""
    weights_file: str | None = None
    limits: Limits = DEFAULT
    """Limits for reading, inferring and running the model."""
    rewritten: list[str] = field(default_factory=list[str])
    """IR v2 to v7: the layers that became other operations, as `ScaleShift 'scale1' → Multiply, Add`."""
    digests: Digests | None = None
    """Digests of the files, if they were hashed while reading."""
    inferred: Inferred | None = field(default=None, init=False, repr=False)
    """The result of the last inference, unless a layer failed."""

    @property
    def inputs(self) -> list[Port]:
        """The Parameters, in file order, except Parameters without an output port."""
        shown = as_it_is if self.ir_version > 10 else v10_input
        return [
            Port(n, n.outputs[0], i, n.outputs[0].names or frozenset({n.name}), shown)
            for i, n in enumerate(self.parameters)
            if n.outputs
        ]

    @property
    def outputs(self) -> list[Port]:
        """The connected Results, in file order, named by `output_names`, else like the tensor that they return."""
        shown = as_it_is if self.ir_version > 10 else v10_output
        return [Port(n, n.inputs[0], i, _result_names(n), shown) for i, n in enumerate(self.results) if n.inputs]

    def input(self, key: str | int | Port = 0) -> Port:
        """An input by position, by any of its tensor names or by its layer's name. Raises InputInvalid."""
        return find_port(self.inputs, key, "input")

    def output(self, key: str | int | Port = 0) -> Port:
        """An output by position, by any of its tensor names or by its layer's name. Raises InputInvalid."""
        return find_port(self.outputs, key, "output")

    def reshape(self, shapes: ShapeLike | Mapping[str | int | Port, ShapeLike]) -> Model:
        """Give inputs new partial shapes and infer again. Returns the model; unchanged if inference fails.

        `shapes`: one shape for a model of one input, or a dict from input name, position or Port to shape. A shape is a
        Shape, a sequence of sizes (None or −1: any; a pair: bounds) or its text `1,?,2..8`. Raises InputInvalid for an
        input that does not exist, and the error of the first layer that is invalid for these shapes.
        """
        if not isinstance(shapes, Mapping):
            if len(self.parameters) != 1:
                raise InputInvalid(
                    f"one shape was given for a model of {len(self.parameters)} inputs; give a dict by name"
                )
            shapes = {0: shapes}
        new_shapes = {self.input(key).node: as_shape(shape) for key, shape in shapes.items()}
        before = {node: node.op for node in new_shapes}
        for node in new_shapes:
            if isinstance(node.op, UnknownOp):
                raise UnknownOperation(
                    f"is of a version that irload does not support ({node.op.opset}), so it takes no shape",
                    node.where(self.file),
                )
        for node, shape in new_shapes.items():
            node.op = type(node.op)(**{**node.op.attributes, "shape": shape})
        try:
            return infer(self)
        except IRError:
            for node, op in before.items():
                node.op = op
            raise

    def __repr__(self) -> str:
        name = f" '{self.name}'" if self.name else ""
        return printable(f"<Model{name} of {len(self.nodes)} layers: {_shown(self.inputs)} → {_shown(self.outputs)}>")

    def _repr_html_(self) -> str:
        """HTML for notebooks."""
        from irload.analysis.notebook import graph_html  # the html module of Python takes a millisecond to import

        head = f"IR version {self.ir_version}", f"{constant_bytes(self) / 1e6:,.1f} MB of constants"
        return graph_html(self, self.name or self.file or "model", head, self.inputs, self.outputs)


SHOWN = 4
"""Maximum number of inputs and of outputs in a repr."""


def _shown(ports: Sequence[Port]) -> str:
    shown = [f"{p.any_name[:40]} {p.type}" for p in ports[:SHOWN]]
    return ", ".join([*shown, f"and {len(ports) - SHOWN} more"] if len(ports) > SHOWN else shown) or "none"


def infer(model: Model, on_error: OnError = raise_error) -> Model:
    """Infer the types and shapes of every layer and store them on its outputs. Returns the model.

    Raises the first error (ShapeMismatch, TypeMismatch, AttributeInvalid …) with its layer and line, unless `on_error`
    handles it.
    """
    require_model(model)
    run = Inference(model.file, on_error, model.limits)
    run.graph(model)
    model.inferred = run.result(model)
    _infer_untaken(model, run)
    for output, tensor in run.types.items():
        output.type = tensor
    _warn(model, run)
    return model


def require_model(model: object) -> None:
    """Raise TypeError for anything but a Model. Paths are a common mistake."""
    if not isinstance(model, Model):
        raise TypeError(f"expected a Model, found {type(model).__name__}; irload.read_model reads a file")


def _warn(model: Model, run: Inference) -> None:
    """Add the remarks of an inference to the model's warnings, without duplicates over repeated inferences."""
    known = set(model.warnings)
    lines = (printable(f"{node.where(model.file)}: {remark}") for node, remark in run.remarks)
    model.warnings += list(islice((line for line in lines if line not in known), REMARKS))


def _infer_untaken(model: Model, run: Inference) -> None:
    """Infer branches that never run, from the declared types of their Parameters. Their errors are ignored."""
    apart = Inference(model.file, lambda node, error: None, model.limits)
    apart.types = run.types
    for graph in model.walk():
        if graph is not model and not any(o in run.types for n in graph.nodes for o in n.outputs):
            apart.graph(graph)


def _result_names(node: Node) -> frozenset[str]:
    return node.inputs[0].names if node.output_names is None else node.output_names


def find_port(ports: Sequence[Port], key: str | int | Port, kind: str) -> Port:
    """One of the ports by position, by any of its tensor names or by its layer's name. Raises InputInvalid."""
    if isinstance(key, Port):
        return key
    if isinstance(key, int):
        if -len(ports) <= key < len(ports):
            return ports[key]
        raise InputInvalid(f"there is no {kind} {key}; the model has {len(ports)}")
    for port in ports:
        if key in port.names or key == port.node.name:
            return port
    for port in ports:
        if key == port.place_name:
            return port
    names = ", ".join(f"'{p.any_name}'" for p in ports)
    raise InputInvalid(f"there is no {kind} named '{key}'; the model has {names or 'none'}")
