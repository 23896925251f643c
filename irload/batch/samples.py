"""Items as model inputs: one array per input, checked and stacked on an axis of samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from irload.batch.casting import bound
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.errors import InputInvalid
from irload.graph import Output, Port

REMEMBERED = 1000
"""Maximum number of shapes cached as valid."""


@dataclass(frozen=True, slots=True)
class Samples:
    """The inputs of one item in the model's order. Axis 0 counts samples; `single` if the item had no such axis.

    `number` selects the stream of random numbers of the item.
    """

    arrays: tuple[Array, ...]
    single: bool = False
    number: int = 0


class SampleInputs:
    """Binds items to the inputs of a model; with `stacked`, any number of samples on axis 0, or one without that axis.

    `lossy`: allow conversions that change values.
    """

    def __init__(self, ports: Sequence[Port], *, stacked: bool, lossy: bool = False) -> None:
        self.ports = ports
        self.stacked = stacked
        self.lossy = lossy
        self._stackable = [_any_count(p) for p in ports] if stacked else ports
        self._fitting: set[tuple[int, tuple[int, ...]]] = set()

    def sample_shape(self, port: Port) -> Shape:
        """The shape of one sample: the port's shape, without axis 0 if that counts samples."""
        shape = port.partial_shape
        if not self.stacked:
            return shape
        return Shape.unranked() if shape.rank is None else Shape(*shape[1:])

    def samples(self, values: Sequence[Array]) -> Samples:
        """The samples of one item. Raises InputInvalid naming the input and its type and shape."""
        ports = self.ports
        if len(values) != len(ports):
            raise InputInvalid(f"the model takes {len(ports)} inputs, found {len(values)}")
        if not self.stacked:
            return Samples(tuple(bound(p, v, lossy=self.lossy) for p, v in zip(ports, values, strict=True)))
        single = all(v.ndim + 1 == p.partial_shape.rank for p, v in zip(ports, values, strict=True))
        stacks = [v[None] if single else v for v in values]
        arrays = tuple(bound(p, v, lossy=self.lossy) for p, v in zip(self._stackable, stacks, strict=True))
        counts = {len(a) for a in arrays}
        if len(counts) > 1:
            raise InputInvalid(f"the inputs differ in their number of samples: {', '.join(map(str, sorted(counts)))}")
        if 0 in counts:
            raise InputInvalid("contains no sample")
        return Samples(arrays, single)

    def require_fit(self, port: Port, shape: tuple[int, ...]) -> None:
        """Refuse an array by its shape, before its data are read. Raises InputInvalid."""
        if (port.index, shape) in self._fitting:
            return
        takes = self._stackable[port.index].partial_shape
        full = (1, *shape) if self.stacked and len(shape) + 1 == takes.rank else shape
        if not takes.contains(Shape(*full)):
            raise InputInvalid(f"has shape {Shape(*shape)}; input '{port.any_name}' takes {takes}")
        if len(self._fitting) < REMEMBERED:
            self._fitting.add((port.index, shape))


def _any_count(port: Port) -> Port:
    """The port with axis 0 relaxed to any number of samples."""
    tensor = TensorType(port.element_type, Shape(None, *port.partial_shape[1:]))
    return Port(port.node, Output(port.node, port.output.index, type=tensor), 0, port.names)
