"""What the ports of a file declare against what inference finds. The runtime never compares the two; irload does.

`irrun infer`, which shows both side by side, and `irrun check`, which reports what differs, judge by the code of this
file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from irload.core.element import dynamic
from irload.core.tensor import TensorType
from irload.graph import Declared, Model, Output

__all__ = ["Comparison", "Judgement", "compare", "declares_static", "judge"]

ShapeVerdict = Literal["fits", "differs", "open", "narrow", "silent"]


@dataclass(frozen=True, slots=True)
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
    if declared is None:
        return FITS
    element = declared.element not in (None, dynamic, inferred.element) and inferred.element is not dynamic
    shape, axis = _judge_shape(declared.dims, inferred)
    return Judgement(element, shape, axis) if element or shape != "fits" else FITS


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


@dataclass(frozen=True, slots=True)
class Comparison:
    """Where one output's declaration and its inferred type disagree: in the element type, in the shape."""

    element: bool
    shape: bool

    def __bool__(self) -> bool:
        return self.element or self.shape


def compare(output: Output, *, static_file: bool) -> Comparison:
    """Whether what the file declares of an output contradicts its inferred type. False for what merely says less.

    A declared −1 admits any size. A port without dims contradicts an inferred rank only in a file that is static
    otherwise (`declares_static`).
    """
    found = judge(output.declared, output.type)
    return Comparison(found.element, found.shape == "differs" or (static_file and found.shape == "silent"))


def declares_static(model: Model) -> bool:
    """True when no port and no Parameter of the file leaves a size open."""
    for graph in model.walk():
        for node in graph.nodes:
            if node.type == "Parameter" and node.op.declared and node.op.attributes["shape"].is_dynamic:
                return False
            if any(o.declared is not None and -1 in (o.declared.dims or ()) for o in node.outputs):
                return False
    return True
