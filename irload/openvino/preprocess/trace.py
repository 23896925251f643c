"""The text of a PrePostProcessor: its tensors, and the type of the data before and after each step."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from irload.core.element import ElementType
from irload.core.shape import Shape
from irload.openvino.layouts import Layout
from irload.openvino.preprocess.formats import ColorFormat
from irload.openvino.preprocess.state import State, Step

__all__ = ["StepTrace", "color_name", "data_type", "numbers"]

_COLORS = {
    ColorFormat.NV12_SINGLE_PLANE: "NV12 (single plane)",
    ColorFormat.NV12_TWO_PLANES: "NV12 (multi-plane)",
    ColorFormat.I420_SINGLE_PLANE: "I420 (single plane)",
    ColorFormat.I420_THREE_PLANES: "I420 (multi-plane)",
}


def color_name(color: ColorFormat) -> str:
    """The name of a colour format, with its number of planes."""
    return _COLORS.get(color, color.name)


def numbers(values: float | Iterable[float]) -> str:
    """Numbers with 6 digits, `1,2.5`."""
    return ",".join(f"{v:g}" for v in (values if isinstance(values, Iterable) else [values]))


def data_type(shape: Shape, layout: Layout, element: ElementType) -> str:
    """`[1,3,8,8], [N,C,H,W], f32`."""
    return f"{shape}, {'<no layout>' if layout.empty else layout}, {element}"


@dataclass(slots=True)
class StepTrace:
    """The steps of one input or output as they are added to the model; the last one is incomplete if it fails."""

    declared: bool = False
    """True if the input is described even without steps."""
    above: list[str] = field(default_factory=list[str])
    below: list[str] = field(default_factory=list[str])
    steps: list[str] = field(default_factory=list[str])
    count: int = 0
    """The number of steps, including those after one that fails."""
    implied: list[str] = field(default_factory=list[str])

    def apply(self, state: State, steps: Sequence[tuple[str, Step]], *, implied: bool = False) -> None:
        """Apply steps to the state."""
        lines = self.implied if implied else self.steps
        self.count += 0 if implied else len(steps)
        for text, step in steps:
            lines.append(f"      {text}: ({_state(state)}")
            step(state)
            lines[-1] += f") -> ({_state(state)})"

    def lines(self, explicit: str, implicit: str) -> list[str]:
        """The description under these titles, empty if there is nothing to describe."""
        if not (self.declared or self.steps or self.implied):
            return []
        listed = [
            line
            for title, steps, count in ((explicit, self.steps, self.count), (implicit, self.implied, len(self.implied)))
            if steps
            for line in (f"    {title} ({count}):", *steps)
        ]
        return [*self.above, *listed, *self.below]


def _state(state: State) -> str:
    plane = state.planes[0].type
    color = f", {color_name(state.color)}" if state.color is not ColorFormat.UNDEFINED else ""
    return data_type(plane.shape, state.layout, plane.element) + color
