"""Compares what a port declares with what is inferred for it. The runtime never does.

`irrun infer`, which shows both side by side, `irrun check`, which reports what differs, and `differences.py`, by which
every model that is read or run is compared, judge by the code of this file.
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
"""What is known of outputs: `own_type`, or a lookup among the types of another inference."""

ShapeVerdict = Literal["fits", "differs", "open", "narrow", "silent"]


@record()
class Judgement:
    """How a declaration stands to an inferred type.

    `element`: the element types contradict each other. `shape`: "fits"; "differs", a claim that cannot be true;
    "open", −1 where the size is known; "narrow", a size where several are possible; "silent", no dims where the rank
    is known. `axis`: the first axis concerned, None where it is the rank.
    """

    element: bool = False
    shape: ShapeVerdict = "fits"
    axis: int | None = None

    @property
    def fits(self) -> bool:
        """True when the declaration says just what was inferred, as far as a port can say it."""
        return not self.element and self.shape == "fits"


FITS = Judgement()


def judge(declared: Declared | None, inferred: TensorType) -> Judgement:
    """Judge one declaration. A port without dims is a scalar or of dynamic rank."""
    if declared is None or _says_just(declared, inferred):
        return FITS
    element = declared.element not in (None, dynamic, inferred.element) and inferred.element is not dynamic
    shape, axis = _judge_shape(declared.dims, inferred)
    return Judgement(element, shape, axis) if element or shape != "fits" else FITS


def _says_just(declared: Declared, inferred: TensorType) -> bool:
    """True for the declaration of nearly every port. Every model that is read has each of its ports judged."""
    dims, shape = declared.dims, inferred.shape
    if declared.element is not inferred.element or dims is None or shape.rank != len(dims):
        return False
    for claim, dim in zip(dims, shape.dims, strict=True):
        # One size, the same on both sides, or any on one side and several on the other.
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
    found: dict[ShapeVerdict, int] = {}
    for axis, (claim, dim) in enumerate(zip(dims, inferred.shape.dims, strict=True)):
        if claim == -1:
            if dim.is_static:
                found.setdefault("open", axis)
        elif not dim.contains(claim):
            return "differs", axis
        elif not dim.is_static:
            found.setdefault("narrow", axis)
    verdict: ShapeVerdict = "narrow" if "narrow" in found else "open" if found else "fits"
    return verdict, found.get(verdict)


def repeats(declared: Declared, claim: Declared | None) -> bool:
    """True where an input port declares nothing but what its producer's port claims. v10 gives it no precision."""
    return claim is not None and claim.dims == declared.dims and declared.element in (None, claim.element)


def judge_input(node: Node, index: int, inferred: TensorType) -> Judgement:
    """Judge what an input port declares of the tensor that arrives there.

    What the producer's port declares as well is judged there. A port without dims says nothing.
    """
    declared, claim = node.declared_inputs[index], node.inputs[index].declared
    found = judge(declared, inferred)
    if found.fits:
        return FITS
    element = found.element and not (claim is not None and claim.element is declared.element)
    if declared.dims is None or (claim is not None and claim.dims == declared.dims):
        return Judgement(element)
    return Judgement(element, found.shape, found.axis)


@record()
class Contradiction:
    """Where one port's declaration and the inferred type contradict each other: in the element type, in the shape."""

    element: bool
    shape: bool

    def __bool__(self) -> bool:
        return self.element or self.shape


AGREES = Contradiction(element=False, shape=False)


def own_type(output: Output) -> TensorType:
    """The type that the output has in its model."""
    return output.type


def compare(output: Output, *, static_file: bool, type_of: TypeOf = own_type) -> Contradiction:
    """Whether what the file declares of an output contradicts its inferred type. False for what merely says less.

    A declared −1 admits any size. A port without dims contradicts an inferred rank only in a file that is static
    otherwise (`declares_static`). What `is_decompression` excuses is no contradiction.
    """
    found = judge(output.declared, type_of(output))
    if found.fits:
        return AGREES
    shape = found.shape == "differs" or (static_file and found.shape == "silent")
    return Contradiction(found.element and not is_decompression(output, type_of), shape)


def is_decompression(output: Output, type_of: TypeOf = own_type) -> bool:
    """True for the Convert behind a constant compressed to f16 whose port still declares f16.

    OpenVINO itself writes it so in bodies.
    """
    node = output.node
    marked = node.inputs and any(a.get("name") == "decompression" for a in node.rt_info)
    return bool(marked) and output.declared is not None and output.declared.element is type_of(node.inputs[0]).element


def declares_static(model: Model) -> bool:
    """True when no port and no Parameter of the file leaves a size open."""
    for graph in model.walk():
        for node in graph.nodes:
            if node.type == "Parameter" and node.op.declared and node.op.attributes["shape"].is_dynamic:
                return False
            if any(o.declared is not None and -1 in (o.declared.dims or ()) for o in node.outputs):
                return False
    return True
