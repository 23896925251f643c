"""Suggests shapes for dynamic inputs: infers candidates until the whole model accepts one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from time import monotonic

from irload import IRError, Model, Port, Shape
from irload.core.shape import Dim

SECONDS = 5.0
"""Time limit of the search in seconds."""
KEPT = 4
"""Upper bound of the candidates of one input that are combined with candidates of the others."""
SIZES = (224, 256, 32, 64, 128, 16, 8, 384, 512, 640, 800, 1024, 4, 2, 1)
"""Sides of images, volumes and windows, in the order of the search."""
LENGTHS = (16, 8, 77, 128, 1, 2, 4, 32, 64, 256, 512, 1024, 4000, 16000, 64000)
"""Lengths of sequences."""
CHANNELS = (3, 1, 4, 2)


def suggestion(model: Model) -> dict[str, Shape]:
    """Return static shapes of the dynamic inputs, by name, for which the whole model infers; empty if there are none.

    The model keeps the last shapes tried and must be discarded.
    """
    until = monotonic() + SECONDS
    ports = [p for p in model.inputs if p.partial_shape.is_dynamic and p.partial_shape.rank is not None]
    before = {p.index: p.partial_shape for p in ports}
    if len(ports) < sum(p.partial_shape.is_dynamic for p in model.inputs):
        return {}
    given = [p.partial_shape.static for p in model.inputs if p.partial_shape.is_static and p.partial_shape.rank]
    batch = given[0][0] if given else 1
    known = tuple(dict.fromkeys(size for sizes in given if len(sizes) < 4 for size in sizes[1:]))
    choices: list[list[Shape]] = []
    for port in ports:
        others = {p.index: before[p.index] for p in ports if p is not port}
        candidates = _candidates(port, batch, known)
        fitting = (s for s in candidates if monotonic() < until and _holds(model, {**others, port.index: s}))
        choices.append(list(islice(fitting, KEPT)))
    # Similar inputs mostly share one length, so equal lengths are tried first.
    combined = sorted(product(*choices), key=lambda shapes: len({s[1:] for s in map(tuple, shapes)}))
    for shapes in combined:
        wanted = dict(zip((p.index for p in ports), shapes, strict=True))
        if monotonic() < until and _holds(model, wanted):
            return {port.any_name: shape for port, shape in zip(ports, shapes, strict=True)}
    return {}


def _candidates(port: Port, batch: int, known: Sequence[int]) -> Iterator[Shape]:
    """Return static shapes within the port's shape: `batch` samples, equal sides, few channels first or last.

    `known`: the lengths of static inputs, which are tried first. An input of one axis may have the length of the batch.
    """
    shape = port.partial_shape
    rank = len(shape)
    seen: set[tuple[int, ...]] = set()
    lengths = (*known, *LENGTHS) if rank > 1 else (LENGTHS[0], batch, *LENGTHS[1:])
    for size in SIZES if rank > 3 else lengths:
        for channels, axis in product(CHANNELS, (1, rank - 1)) if rank > 3 else ((size, 0),):
            sizes = [channels if k == axis and rank > 3 else size for k in range(rank)]
            sizes[0] = batch if rank > 1 else size
            fitted = tuple(_within(dim, size) for dim, size in zip(shape, sizes, strict=True))
            if fitted not in seen:
                seen.add(fitted)
                yield Shape(*fitted)


def _within(dim: Dim, size: int) -> int:
    return max(dim.lo, size if dim.hi is None else min(size, dim.hi))


def _holds(model: Model, shapes: Mapping[int, Shape]) -> bool:
    """Return True if the model infers for these shapes with non-empty outputs."""
    try:
        model.reshape({index: shape for index, shape in shapes.items()})  # noqa: C416 - the key type widens
    except IRError:
        return False
    return not any(d.hi == 0 for p in model.outputs for d in (p.partial_shape if p.partial_shape.rank else ()))


def reshapes(model: Model, port: Port, shape: Shape) -> bool:
    """Return True if inference succeeds with this shape of an input. The model keeps it: discard the model."""
    return _holds(model, {port.index: shape})


def advice(model: Model, ports: Sequence[Port]) -> str:
    """Return the --shape options that the model accepts, as advice: `sizes, for example --shape 'image[1,1,8,8]'`."""
    shapes = suggestion(model)
    if not shapes:
        names = " ".join(f"--shape '{p.any_name}[…]'" for p in ports)
        return f"sizes that the model accepts: {names}"
    return "sizes, for example " + " ".join(f"--shape '{name}{shape}'" for name, shape in shapes.items())
