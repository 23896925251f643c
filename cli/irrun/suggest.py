"""Shapes for dynamic inputs that a model's own layers allow, found by inferring candidates."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from time import monotonic

from irload import IRError, Model, Port, Shape
from irload.core.shape import Dim

SECONDS = 5.0
"""Time that the search may take."""
KEPT = 4
"""Candidates of one input that are combined with those of the others."""
SIZES = (224, 256, 32, 64, 128, 16, 8, 384, 512, 640, 800, 1024, 4, 2, 1)
"""Sides of images, volumes and windows, in the order in which they are tried."""
LENGTHS = (16, 8, 77, 128, 1, 2, 4, 32, 64, 256, 512, 1024, 4000, 16000, 64000)
"""Lengths of sequences."""
CHANNELS = (3, 1, 4, 2)


def suggestion(model: Model) -> dict[str, Shape]:
    """Static shapes of the dynamic inputs, by name, for which the whole model infers. Empty where none was found.

    The model keeps shapes that were tried, so it is of no further use.
    """
    until = monotonic() + SECONDS
    ports = [p for p in model.inputs if p.partial_shape.is_dynamic and p.partial_shape.rank is not None]
    before = {p.index: p.partial_shape for p in ports}
    if len(ports) < sum(p.partial_shape.is_dynamic for p in model.inputs):
        return {}
    choices: list[list[Shape]] = []
    for port in ports:
        others = {p.index: before[p.index] for p in ports if p is not port}
        fitting = (s for s in _candidates(port) if monotonic() < until and _holds(model, {**others, port.index: s}))
        choices.append(list(islice(fitting, KEPT)))
    # Inputs that are alike are mostly of one length, so such combinations come first.
    combined = sorted(product(*choices), key=lambda shapes: len({s[1:] for s in map(tuple, shapes)}))
    for shapes in combined:
        wanted = dict(zip((p.index for p in ports), shapes, strict=True))
        if monotonic() < until and _holds(model, wanted):
            return {port.any_name: shape for port, shape in zip(ports, shapes, strict=True)}
    return {}


def _candidates(port: Port) -> Iterator[Shape]:
    """Static shapes within what the port takes: one sample, sides of one size, few channels before or after them."""
    shape = port.partial_shape
    rank = len(shape)
    seen: set[tuple[int, ...]] = set()
    for size in SIZES if rank > 3 else LENGTHS:
        for channels, axis in product(CHANNELS, (1, rank - 1)) if rank > 3 else ((size, 0),):
            sizes = [1 if k == 0 and rank > 1 else channels if k == axis and rank > 3 else size for k in range(rank)]
            fitted = tuple(_within(dim, size) for dim, size in zip(shape, sizes, strict=True))
            if fitted not in seen:
                seen.add(fitted)
                yield Shape(*fitted)


def _within(dim: Dim, size: int) -> int:
    return max(dim.lo, size if dim.hi is None else min(size, dim.hi))


def _holds(model: Model, shapes: Mapping[int, Shape]) -> bool:
    """True where the model infers for these shapes, and gives outputs of some size."""
    try:
        model.reshape({index: shape for index, shape in shapes.items()})  # noqa: C416 - the key type widens
    except IRError:
        return False
    return not any(d.hi == 0 for p in model.outputs for d in (p.partial_shape if p.partial_shape.rank else ()))


def advice(model: Model, ports: Sequence[Port]) -> str:
    """The options that give dynamic inputs shapes which the model takes, for an error about some of them."""
    found = suggestion(model)
    if not found:
        names = " ".join(f"--shape '{p.any_name}[…]'" for p in ports)
        return f"give them sizes that suit the model, as {names}"
    return "this suits the model: " + " ".join(f"--shape '{name}{shape}'" for name, shape in found.items())
