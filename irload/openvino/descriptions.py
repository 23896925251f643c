"""Descriptions of the ports of operations with bodies: how inputs and outputs are wired to the body."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Self

from irload.core.subgraph import PortMap
from irload.openvino.type_info import DiscreteTypeInfo

__all__ = [
    "BodyOutputDescription",
    "ConcatOutputDescription",
    "InputDescription",
    "InvariantInputDescription",
    "MergedInputDescription",
    "OutputDescription",
    "SliceInputDescription",
]


@dataclass
class _Description:
    def copy(self) -> Self:
        """A copy of the description."""
        return replace(self)

    def get_type_info(self) -> DiscreteTypeInfo:
        """The name of the description."""
        return DiscreteTypeInfo(type(self).__name__, "util")


@dataclass
class _Parts:
    """The parts of a tensor, one for each iteration."""

    start: int = 0
    stride: int = 1
    part_size: int = 1
    end: int = -1
    axis: int = 0

    def parts(self, whole: PortMap) -> PortMap:
        """The line of the port map for parts instead of the whole tensor."""
        return replace(
            whole, axis=self.axis, start=self.start, end=self.end, stride=self.stride, part_size=self.part_size
        )


@dataclass
class InputDescription(_Description):
    """An input of the operation, and the parameter of the body that it feeds."""

    input_index: int = 0
    body_parameter_index: int = 0

    def map(self) -> PortMap:
        """The line of the port map."""
        return PortMap(self.input_index, self.body_parameter_index)


@dataclass
class InvariantInputDescription(InputDescription):
    """The same tensor in every iteration."""


@dataclass
class MergedInputDescription(InputDescription):
    """An initial value, then a result of the body."""

    body_value_index: int = 0


@dataclass
class SliceInputDescription(_Parts, InputDescription):
    """The next part of a tensor in every iteration."""

    def map(self) -> PortMap:
        """The line of the port map."""
        return self.parts(super().map())


@dataclass
class OutputDescription(_Description):
    """A result of the body, and the output of the operation that it feeds."""

    body_value_index: int = 0
    output_index: int = 0

    def map(self) -> PortMap:
        """The line of the port map."""
        return PortMap(self.output_index, self.body_value_index)


@dataclass
class BodyOutputDescription(OutputDescription):
    """The result of the last iteration."""

    iteration: int = -1


@dataclass
class ConcatOutputDescription(_Parts, OutputDescription):
    """The results of all iterations, concatenated."""

    def map(self) -> PortMap:
        """The line of the port map."""
        return self.parts(super().map())
