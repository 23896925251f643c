"""Random programs: a seed and an index always give the same program."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from irload.core import element as et
from tests.fuzz.programs import blocks, control, element_types, experts, moves, pointwise, rows, tokens, windows
from tests.fuzz.programs.build import Build, Value
from tests.fuzz.programs.graph import Graph, pruned, uses

Emitter = Callable[[Build, Value], Any]
ANY, MAPS, ROWS = (0, 1, 2, 3, 4, 5), (3, 4, 5), (1, 2, 3, 4, 5)

EMITTERS: Sequence[tuple[float, tuple[int, ...], Emitter]] = (
    (3, MAPS, windows.convolution),
    (2, MAPS, windows.grouped),
    (2, MAPS, windows.transposed),
    (1.5, MAPS, windows.max_pool),
    (1.5, MAPS, windows.avg_pool),
    (0.5, MAPS, windows.adaptive),
    (2, MAPS, windows.resize),
    (0.7, MAPS, windows.sampled),
    (0.7, MAPS, windows.deformed),
    (0.5, MAPS, windows.regions),
    (1, MAPS, windows.bias),
    (1.5, MAPS, windows.batch_norm),
    (0.3, MAPS, windows.lrn),
    (0.6, MAPS, windows.rearranged),
    (0.3, MAPS, windows.shuffled),
    (1, MAPS, rows.group_norm),
    (1, MAPS, rows.instance_norm),
    (2, MAPS, rows.spatial_mean),
    (3, MAPS, blocks.activated),
    (2, MAPS, blocks.residual),
    (2, MAPS, blocks.diamond),
    (2, MAPS, blocks.ghost),
    (2.5, MAPS, blocks.joined),
    (2, MAPS, blocks.parted),
    (2, MAPS, blocks.shuffle),
    (1, MAPS, blocks.squeeze_excite),
    (1, MAPS, blocks.inverted),
    (1.5, MAPS, blocks.pyramid),
    (1, MAPS, blocks.unfolded),
    (1.5, MAPS, blocks.detector),
    (1, MAPS, blocks.patches),
    (1, MAPS, blocks.pooled_head),
    (0.5, (4,), moves.windowed),
    (1, MAPS, blocks.resized_into),
    (0.6, MAPS, element_types.quantized_convolution),
    (2, ANY, pointwise.unary),
    (1, ANY, pointwise.written_out),
    (3, ANY, pointwise.binary),
    (2, ANY, pointwise.two_of_pool),
    (1.5, ANY, pointwise.broadcast_of_pool),
    (0.5, ANY, pointwise.chosen),
    (1, ANY, element_types.fake_quantize),
    (0.15, ANY, element_types.step_function),
    (0.4, ANY, element_types.through_integers),
    (0.3, ANY, element_types.logical),
    (0.7, ANY, control.loop),
    (0.6, ANY, control.branch),
    (0.8, ANY, control.state),
    (0.5, ROWS, pointwise.prelu),
    (2, ROWS, moves.transpose),
    (1.5, ROWS, moves.reshape),
    (1, ROWS, moves.cut),
    (0.5, ROWS, moves.strided),
    (1.5, ROWS, moves.split),
    (2.5, ROWS, moves.join),
    (0.7, ROWS, moves.gather),
    (0.7, ROWS, moves.pad),
    (0.3, ROWS, moves.tile),
    (0.5, ROWS, moves.broadcast),
    (0.3, ROWS, moves.turned),
    (0.4, ROWS, moves.by_own_shape),
    (0.7, ROWS, moves.crossed),
    (0.5, ROWS, moves.chosen_rows),
    (0.8, ROWS, moves.of_sizes),
    (0.7, ROWS, moves.elements),
    (0.4, ROWS, moves.scattered),
    (0.5, ROWS, moves.batches),
    (1.5, ROWS, rows.layer_norm),
    (1, ROWS, rows.rms_norm),
    (1, ROWS, blocks.turned_norm),
    (0.5, ROWS, rows.unit_length),
    (1, ROWS, rows.softmax),
    (2, ROWS, rows.reduced),
    (0.3, ROWS, rows.cumulative),
    (0.3, ROWS, rows.chosen_largest),
    (1.5, ROWS, tokens.linear),
    (1.5, ROWS, tokens.product),
    (0.5, ROWS, element_types.quantized_linear),
    (0.3, ROWS, element_types.half_weights),
    (0.6, ROWS, element_types.half_piece),
    (0.5, ROWS, control.iterator),
    (0.7, (2, 3, 4), tokens.gated),
    (1, (2, 3, 4), tokens.rotary),
    (3, (3,), tokens.attention),
    (0.6, (3,), tokens.embedded),
    (0.3, (3,), tokens.einsum),
    (0.7, (3,), control.sequence),
    (0.7, (2,), control.cell),
    (0.8, (2,), experts.routed),
)
"""(relative frequency, ranks of the values that the emitter accepts, emitter)."""


def make(seed: int, index: int, precision: str = "f32") -> Graph:
    """The program of a seed and an index, to be run in f32 or in bf16."""
    rng = np.random.default_rng((seed, index))
    coarse = precision == "bf16"
    for _ in range(20):
        graph = _made(rng, 0.0 if coarse else 0.2, 0.7 if coarse else 0.0, 0.0 if coarse else 0.2)
        if graph is not None:
            if coarse:
                graph.traits = ("bf16", *(t for t in graph.traits if t != "precise"))
            return graph
    raise AssertionError(f"seed {seed}, index {index} give no program")


def _made(rng: np.random.Generator, odds: float, widths: float, short: float) -> Graph | None:
    """A random program, or None if no emitter fitted.

    The arguments are probabilities: that it is odd or wide (see Build), and that it computes in f16 or bf16 (`short`).
    """
    dyadic, odd, big = bool(rng.random() < 0.5), bool(rng.random() < odds), bool(rng.random() < 0.08)
    precise = odd or bool(rng.random() < (0.5 if dyadic else 0.15))
    dynamic = not odd and bool(rng.random() < 0.15)
    wide = widths > 0 and bool(rng.random() < widths)
    element = (et.f16, et.f16, et.bf16)[int(rng.integers(3))] if rng.random() < short else et.f32
    b = Build(rng, dyadic=dyadic, precise=precise, odd=odd, big=big, wide=wide, dynamic=dynamic, element=element)
    b.graph.dynamic = dynamic
    b.batch = 2 if dynamic else b.pick((1, 1, 1, 2, 3))
    family = b.pick(("map", "map", "map", "line", "volume", "tokens", "tokens", "row", "mixed"))
    for shape in _shapes(b, family):
        b.pool.append(b.parameter(shape))
    goal, failures = b.number(3, 25), 0
    while b.graph.work < goal and failures < 40:
        if not _grown(b):
            failures += 1
    return _finished(b)


def _shapes(b: Build, family: str) -> list[tuple[int, ...]]:
    n = b.batch
    c = b.pick(windows.WIDE if b.wide else (1, 2, 3, 4, 4, 6, 8, 8, 16))
    if family == "map":
        side = b.pick((1, 4, 5, 6, 7, 8, 8, 12, 16))
        shape = (n, c, side, side if b.chance(0.5) else b.number(1, 12))
        if b.big:
            shape = (1, b.pick((16, 32, 48, 64)), b.number(12, 40), b.number(12, 40))
    elif family == "line":
        shape = (n, c, b.number(4, 30) if not b.big else b.number(100, 600))
    elif family == "volume":
        shape = (n, b.pick((1, 2, 3, 4)), b.number(2, 6), b.number(2, 6), b.number(2, 7))
        if b.big:
            shape = (1, 8, 8, 16, 24)
    elif family == "tokens":
        shape = (n, b.number(2, 12), b.pick(windows.WIDE if b.wide else (4, 6, 8, 12, 16)))
        if b.big:
            shape = (b.pick((1, 2)), b.pick((64, 40, 130)), b.pick((64, 96, 128)))
    elif family == "row":
        shape = (n, b.number(2, 20)) if not b.big else (b.pick((4, 40, 200)), b.pick((64, 300, 512)))
    else:
        return [*_shapes(b, "map")[:1], *_shapes(b, "tokens")[:1], *_shapes(b, "row")[:1]]
    if b.dynamic:
        shape = (n, *shape[1:])
    return [shape] * b.pick((1, 1, 2))


_WEIGHTS = {
    rank: np.array([w if rank in ranks else 0 for w, ranks, _ in EMITTERS]) for rank in range(6)
}  # fmt: skip


def _grown(b: Build) -> bool:
    """Apply a random emitter to a random value. False if it did not fit."""
    recent = b.pool[-1] if b.chance(0.5) else b.pick(b.pool[-8:] if b.chance(0.8) else b.pool)
    if (
        recent.rank > 5
        or recent.element is not b.element
        or not 0 < recent.size <= (1 << 17 if b.big or b.wide else 1 << 13)
    ):
        return False
    weights = _WEIGHTS[recent.rank]
    emit = EMITTERS[int(b.rng.choice(len(EMITTERS), p=weights / weights.sum()))][2]
    layer = b.trying(lambda: emit(b, recent))
    if layer is None:
        return False
    for value in layer if isinstance(layer, list) else [layer]:
        if value.element is b.element and value.size:
            b.pool.append(value)
    return True


def _finished(b: Build) -> Graph | None:
    """The graph with results: up to four unused values, some used ones, sometimes an input. None without results."""
    graph = b.graph
    used = set(uses(graph))
    ends = [v for v in b.pool if v.ref not in used and graph.layers[v.ref.layer].type != "Parameter"]
    inner = [v for v in b.pool if v.ref in used and graph.layers[v.ref.layer].type not in ("Parameter", "Const")]
    chosen = ends[-4:] if len(ends) > 4 else ends
    chosen += [v for v in inner if b.chance(0.08)]
    if b.chance(0.05):
        chosen.append(b.pool[0])
    if b.chance(0.03) and chosen:
        chosen.append(chosen[0])
    if not chosen:
        return None
    if b.chance(0.3 if b.dynamic else 0.05):
        chosen.append(moves.sizes(b, b.pick(chosen)))
    graph.results = [v.ref for v in chosen]
    if b.dynamic:
        _open(graph, b.batch)
    graph.traits = tuple(
        name
        for name, true in (
            ("precise", b.precise),
            ("lowered", b.chance(0.5)),
            ("odd", b.odd),
            ("short", b.element is not et.f32),
        )
        if true
    )
    return pruned(graph)


def _open(graph: Graph, batch: int) -> None:
    """Make the batch dynamic in all inputs that have one."""
    for k in graph.parameters:
        layer = graph.layers[k]
        shape = layer.types[0][1]
        if len(shape) > 1 and shape[0] == batch:
            open_shape = ",".join(("?", *map(str, shape[1:])))
            graph.layers[k] = replace(layer, data=layer.data | {"shape": open_shape})
