"""Einsum: Einstein summation over any number of operands."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_letters

import numpy as np

from irload.core import attribute as attr
from irload.core.element import merge
from irload.core.op import Op
from irload.core.shape import Dim, Shape
from irload.core.tensor import Array, TensorType
from irload.errors import AttributeInvalid, ShapeMismatch
from irload.ops.elementwise import require_numeric
from irload.record import record

ELLIPSIS = "..."


@record()
class Equation:
    """The subscripts of an equation: for each operand, and for the output, a tuple of letters and ellipses."""

    inputs: tuple[tuple[str, ...], ...]
    output: tuple[str, ...]

    @staticmethod
    def parse(text: str) -> Equation:
        """Parse `ij,jk->ik`; without an arrow the output is implicit as specified. Raises AttributeInvalid."""
        left, arrow, right = "".join(text.split()).partition("->")
        inputs = tuple(_labels(subscript, text) for subscript in left.split(","))
        every = [label for labels in inputs for label in labels]
        if arrow:
            output = _labels(right, text)
        else:
            once = sorted(label for label in set(every) if label != ELLIPSIS and every.count(label) == 1)
            output = (*((ELLIPSIS,) if ELLIPSIS in every else ()), *once)
        for label in output:
            if label != ELLIPSIS and label not in every:
                raise AttributeInvalid(f"equation '{text}': output label {label} is in none of the inputs")
            if output.count(label) > 1:
                raise AttributeInvalid(f"equation '{text}': output label {label} occurs twice")
        return Equation(inputs, output)

    def spelled(self, ranks: Sequence[int]) -> Equation:
        """The equation for operands of these ranks, with letters in place of ellipses.

        Raises ValueError if there are more axes than letters.
        """
        covered = [rank - len(labels) + 1 for rank, labels in zip(ranks, self.inputs, strict=True)]
        widest = max([n for n, labels in zip(covered, self.inputs, strict=True) if ELLIPSIS in labels], default=0)
        used = {label for labels in self.inputs for label in labels}
        free = [letter for letter in ascii_letters if letter not in used][:widest]
        if len(free) < widest:
            raise ValueError("more axes than letters")
        pairs = zip(self.inputs, covered, strict=True)
        return Equation(tuple(_spelled(labels, free[widest - n :]) for labels, n in pairs), _spelled(self.output, free))


def _labels(subscript: str, text: str) -> tuple[str, ...]:
    before, dots, after = subscript.partition(ELLIPSIS)
    for letter in before + after:
        if letter not in ascii_letters:
            raise AttributeInvalid(
                f"equation '{text}': a subscript holds letters and at most one ellipsis, found '{subscript}'"
            )
    return (*before, *((ELLIPSIS,) if dots else ()), *after)


class Einsum(Op, since=7):
    """Multiplies operands along axes named by letters and sums over the letters that the output lacks.

    `equation` is `ij,jk->ik`, or implicit: without an arrow, the output has the letters that occur once, sorted. A
    letter repeated in one operand selects its diagonal; an ellipsis stands for any number of axes. Axes of one letter
    broadcast between operands.
    """

    multiplies = True

    equation = attr.text()

    def validate(self) -> None:
        Equation.parse(self.equation)

    def infer(self, *operands: TensorType) -> TensorType:
        equation = Equation.parse(self.equation)
        if len(operands) != len(equation.inputs):
            raise ShapeMismatch(
                f"equation '{self.equation}' has {len(equation.inputs)} subscripts for {len(operands)} inputs"
            )
        element = merge(*(t.element for t in operands))
        require_numeric("the operands", element)
        dims: dict[str, Shape] = {}
        for k, (labels, operand) in enumerate(zip(equation.inputs, operands, strict=True)):
            if operand.rank is None and ELLIPSIS in labels:
                return TensorType(element, Shape.unranked())
            self._join(dims, labels, operand.shape, k)
        return TensorType(element, Shape(*(d for label in equation.output for d in dims.get(label, Shape()))))

    def _join(self, dims: dict[str, Shape], labels: tuple[str, ...], shape: Shape, k: int) -> None:
        """Add the dims of one operand's labels to `dims`."""
        parts: dict[str, Shape] = {}
        for label, part in _parts(labels, shape, f"input {k} of '{self.equation}'"):
            met = parts[label].meet(part) if label in parts else part
            if met is None:
                raise ShapeMismatch(
                    f"input {k} of '{self.equation}' repeats {label} on axes of sizes {parts[label]}, {part}"
                )
            parts[label] = met
        for label, part in parts.items():
            dims[label] = dims[label].broadcast(part) if label in dims else part

    def compute(self, *operands: Array) -> Array:
        # NumPy requires an ellipsis in the output if an input has one, so letters replace its axes.
        equation = Equation.parse(self.equation).spelled([a.ndim for a in operands])
        *inputs, output = ("".join(labels) for labels in (*equation.inputs, equation.output))
        return np.asarray(np.einsum(f"{','.join(inputs)}->{output}", *operands, optimize=True))


def _parts(labels: tuple[str, ...], shape: Shape, owner: str) -> list[tuple[str, Shape]]:
    """Each label with its axes: one, or all axes of the ellipsis."""
    if shape.rank is None:
        return [(label, Shape(Dim())) for label in labels]
    covered = shape.rank - len(labels) + (1 if ELLIPSIS in labels else 0)
    if covered < 0 or (covered and ELLIPSIS not in labels):
        raise ShapeMismatch(f"{owner} has shape {shape} for {len(labels)} labels")
    parts: list[tuple[str, Shape]] = []
    at = 0
    for label in labels:
        width = covered if label == ELLIPSIS else 1
        parts.append((label, Shape(*shape[at : at + width])))
        at += width
    return parts


def _spelled(labels: tuple[str, ...], ellipsis: Sequence[str]) -> tuple[str, ...]:
    return tuple(letter for label in labels for letter in (ellipsis if label == ELLIPSIS else label))
