"""Compares a port's declaration with its inferred type. OpenVINO never does.

Shared by `irrun infer`, which shows both, `irrun check`, which reports differences, and `differences.py`, which
compares every model that is read or run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from irload.core.element import dynamic
from irload.core.tensor import TensorType
from irload.graph import Declared, Node, Output
from irload.model import Model
from irload.record import record

__all__ = [
    "Contradiction",
    "Judgement",
    "TypeOf",
    "compare",
    "declares_static",
    "is_decompression",
    "judge",
    "judge_input",
    "own_type",
    "repeats",
]

TypeOf = Callable[[Output], TensorType]
"""Returns the type of an output: `own_type`, or a lookup in another inference."""

ShapeVerdict = Literal["fits", "differs", "open", "narrow", "silent"]


@record()
class Judgement:
    """The relation of a declaration to an inferred type.

    `element`: the element types contradict each other. `shape`: "fits"; "differs", a false declaration; "open", −1 for
    a known size; "narrow", a size where several are possible; "silent", no dims for a known rank. `axis`: the first
    axis concerned, None for the rank.
    """

    element: bool = False
    shape: ShapeVerdict = "fits"
    axis: int | None = None

    @property
    def fits(self) -> bool:
        """True if the declaration equals the inferred type, as far as a port can express it."""
        return not self.element and self.shape == "fits"


FITS = Judgement()


def judge(declared: Declared | None, inferred: TensorType) -> Judgement:
    """Judge one declaration. A port without dims is a scalar or of dynamic rank."""
    if declared is None or _equals(declared, inferred):
        return FITS
    element = declared.element not in (None, dynamic, inferred.element) and inferred.element is not dynamic
    shape, axis = _judge_shape(declared.dims, inferred)
    return Judgement(element, shape, axis) if element or shape != "fits" else FITS


def _equals(declared: Declared, inferred: TensorType) -> bool:
    """True if a declaration equals the inferred type, the common case: faster than a judgement."""
    dims, shape = declared.dims, inferred.shape
    if declared.element is not inferred.element or dims is None or shape.rank != len(dims):
        return False
    for claim, dim in zip(dims, shape.dims, strict=True):
        # The declaration must equal a static dim, and be −1 for a dynamic dim.
        if claim != dim.lo if dim.lo == dim.hi else claim != -1:
            return False
    return True


def _judge_shape(dims: tuple[int, ...] | None, inferred: TensorType) -> tuple[ShapeVerdict, int | None]:
    rank = inferred.shape.rank
    if rank is None:
        return "fits", None
    if dims is None:
        return ("silent" if rank else "fits"), None
    if len(dims) != rank:
        return "differs", None
    axes: dict[ShapeVerdict, int] = {}
    for axis, (claim, dim) in enumerate(zip(dims, inferred.shape.dims, strict=True)):
        if claim == -1:
            if dim.is_static:
                axes.setdefault("open", axis)
        elif not dim.contains(claim):
            return "differs", axis
        elif not dim.is_static:
            axes.setdefault("narrow", axis)
    verdict: ShapeVerdict = "narrow" if "narrow" in axes else "open" if axes else "fits"
    return verdict, axes.get(verdict)


def repeats(declared: Declared, claim: Declared | None) -> bool:
    """True if an input port only repeats its producer's port. IR v10 input ports have no precision."""
    return claim is not None and claim.dims == declared.dims and declared.element in (None, claim.element)


def judge_input(node: Node, index: int, inferred: TensorType) -> Judgement:
    """Judge the declaration of an input port against the tensor that feeds it.

    A declaration that the producer's port repeats is judged there. A port without dims declares nothing.
    """
    declared, claim = node.declared_inputs[index], node.inputs[index].declared
    judgement = judge(declared, inferred)
    if judgement.fits:
        return FITS
    element = judgement.element and not (claim is not None and claim.element is declared.element)
    if declared.dims is None or (claim is not None and claim.dims == declared.dims):
        return Judgement(element)
    return Judgement(element, judgement.shape, judgement.axis)


@record()
class Contradiction:
    """Whether a port's declaration contradicts its inferred type: in the `element` type, in the `shape`."""

    element: bool
    shape: bool

    def __bool__(self) -> bool:
        return self.element or self.shape


AGREES = Contradiction(element=False, shape=False)


def own_type(output: Output) -> TensorType:
    """Return the type that the output has in its model."""
    return output.type


def compare(output: Output, *, static_file: bool, type_of: TypeOf = own_type) -> Contradiction:
    """Return whether the declaration of an output contradicts its inferred type. A less specific declaration does not.

    A declared −1 admits any size. A port without dims contradicts an inferred rank only in a file that is otherwise
    static (`declares_static`). Declarations accepted by `is_decompression` are allowed.
    """
    judgement = judge(output.declared, type_of(output))
    if judgement.fits:
        return AGREES
    shape = judgement.shape == "differs" or (static_file and judgement.shape == "silent")
    return Contradiction(judgement.element and not is_decompression(output, type_of), shape)


def is_decompression(output: Output, type_of: TypeOf = own_type) -> bool:
    """True for the Convert after a constant compressed to f16 whose port still declares f16.

    OpenVINO itself writes this in bodies.
    """
    node = output.node
    marked = node.inputs and any(a.get("name") == "decompression" for a in node.rt_info)
    return bool(marked) and output.declared is not None and output.declared.element is type_of(node.inputs[0]).element


def declares_static(model: Model) -> bool:
    """True if every port and Parameter of the file declares a static shape."""
    for graph in model.walk():
        for node in graph.nodes:
            if node.type == "Parameter" and node.op.declared and node.op.attributes["shape"].is_dynamic:
                return False
            if any(o.declared is not None and -1 in (o.declared.dims or ()) for o in node.outputs):
                return False
    return True
