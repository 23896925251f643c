"""What a program goes through: planned against plain, at 1, 2 and 3 threads, again and again.

At one of these numbers of threads the plan's sanitizer watches each step; at the others the plan runs as it always
does, and where a file can keep it, once more from that file.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field

import numpy as np

import irload
from irload.model import Model
from irload.plan.ir.program import PlanInvalid
from irload.plan.sanitizing import sanitizing
from irload.run import CompiledModel, InferRequest
from tests.fuzz.programs.feed import fed
from tests.fuzz.programs.near import ROUNDINGS, UNITS, Rounding, Shaken, differs, distance, scale
from tests.fuzz.programs.thresholds import all_in_bf16, lowered
from tests.harness.case import Array
from tests.harness.kept import from_its_file

THREADS = (1, 2, 3)
BATCHES = (2, 1, 3)
"""Sizes of what is open, one after the other."""


class Wrong(Exception):
    """A program whose plan is wrong: `kind` says in which way."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind


@dataclass
class Played:
    """What came of a program that ran."""

    refused: str = ""
    """The error that plain and plan both gave."""
    exact: int = 0
    blunt: int = 0
    """Outputs compared exactly, and those with so wide a tolerance that it says little."""
    outputs: int = 0
    runtime: str = ""
    """What the real runtime said: "agrees", or why it was not asked."""


@dataclass
class Expected:
    """The plain results of a sequence of inferences."""

    feeds: list[list[Array]]
    results: list[list[Array] | str]
    tolerances: list[float | None] = field(default_factory=list[float | None])


def play(xml: bytes, blob: bytes, *, runtime: bool = False, threads: Sequence[int] = THREADS) -> Played:
    """Run the program in every way. Raises Wrong."""
    model = irload.read_model(xml, blob)
    traits = set(re.search(rb'<net name="([^"]*)"', xml).group(1).decode().split("-"))  # type: ignore[union-attr]
    rounding = ROUNDINGS["bf16" if "bf16" in traits else "f32"]
    expected = plainly(model, rounding)
    played = Played(outputs=len(model.outputs))
    refused = [r for r in expected.results if isinstance(r, str)]
    played.refused = refused[0] if len(refused) == len(expected.results) else ""
    played.exact = sum(t is None for t in expected.tolerances)
    played.blunt = _blunt(expected, rounding.wide)
    options = {"precise": "precise" in traits, "precision": "auto" if "bf16" in traits else "f32"}
    small = lowered() if "lowered" in traits else nullcontext()
    with small, all_in_bf16() if "bf16" in traits else nullcontext():
        watched = threads[zlib.crc32(xml) % len(threads)]
        for count in threads:
            with sanitizing(count == watched):
                compiled = irload.compile_model(model, count, **options)
                _planned(compiled, expected, f"{count} threads")
                again = None if count == watched else from_its_file(compiled)
                if again is not None:
                    _planned(again, expected, f"{count} threads, a plan that was kept")
    if runtime:
        from tests.fuzz.programs.oracle import compare

        played.runtime = "not finite" if "odd" in traits else compare(xml, blob, model, expected)
    return played


def plainly(model: Model, rounding: Rounding = ROUNDINGS["f32"]) -> Expected:
    """The plain results, and how far planned ones may be from them."""
    feeds = [_feed(model, turn, batch) for turn, batch in _turns(model)]
    request = irload.compile_model(model, optimize=False).create_infer_request()
    stateless = not any(True for graph in model.walk() for _ in graph.sinks)
    results = [_outcome(request, feed) for feed in (feeds[:-1] if stateless else feeds)]
    expected = Expected(feeds, [*results, results[0]] if stateless else results)
    good = [r for r in expected.results if not isinstance(r, str)]
    if not good:
        return expected
    still = ("exact_", "const", "dyadic", "normal", "odd") if rounding.exact else ()
    rounded = [not _source(model, k).startswith(still) for k in range(len(model.outputs))]
    shaken: list[float] = [0.0] * len(model.outputs)
    overflows = False
    odd = any(p.node.name.startswith("odd") for p in model.inputs)
    if any(rounded) or odd or not all(_is_finite(a) for r in good for a in r):
        for seed in range(rounding.shakes):
            again, huge = _shaken(model, feeds[:-1] if stateless else feeds, rounding, seed)
            overflows |= huge
            for plain, moved in zip(expected.results, again, strict=False):
                if not isinstance(plain, str) and not isinstance(moved, str):
                    gaps = [distance(a, b) for a, b in zip(plain, moved, strict=True)]
                    shaken = [max(a, b) for a, b in zip(shaken, gaps, strict=True)]
    coarsest = _coarsest(model)
    least = [max(_least(r[k], rounding, coarsest) for r in good) for k in range(len(model.outputs))]
    expected.tolerances = [
        rounding.factor * max(s, low) if r else None for s, low, r in zip(shaken, least, rounded, strict=True)
    ]
    if overflows:  # what a maximum of nothing starts from, added up: the order decides what becomes infinite
        expected.tolerances = [np.inf] * len(rounded)
    if not rounding.exact:
        unlike = [odd or any(r[k].dtype.kind not in "fV" for r in good) for k in range(len(rounded))]
        expected.tolerances = [np.inf if u else t for u, t in zip(unlike, expected.tolerances, strict=True)]
    return expected


def _is_finite(array: Array) -> bool:
    """True where an array of floats holds neither NaN nor infinities; nothing else can."""
    return array.dtype.kind != "f" or bool(np.isfinite(array).all())


def _least(array: Array, rounding: Rounding, coarsest: float) -> float:
    """A share of a unit in the last place of the largest number, in the coarsest type on the way if it is a float."""
    wide = array.astype(np.float64)
    unit = max(rounding.of(array.dtype.name) or 0, coarsest if array.dtype.kind in "fV" else 0)
    return rounding.least * unit * float(np.abs(wide[np.isfinite(wide)]).max(initial=0))


def _coarsest(model: Model) -> float:
    """The unit of the shortest floats that something is computed in: plans round them only at the end."""
    nodes = (n for graph in model.walk() for n in graph.nodes if n.type not in ("Const", "Parameter"))
    names = {o.type.element.dtype.name for n in nodes for o in n.outputs}
    return max((UNITS[name] for name in names & {"float16", "bfloat16"}), default=0.0)


def _source(model: Model, k: int) -> str:
    return model.results[k].inputs[0].node.name


def _turns(model: Model) -> list[tuple[int, int]]:
    """(number, size of what is open) of each inference."""
    if any(not p.partial_shape.is_static for p in model.inputs):
        return [(0, BATCHES[0]), (1, BATCHES[1]), (2, BATCHES[2]), (0, BATCHES[0])]
    return [(0, 1), (1, 1), (0, 1)]


def _feed(model: Model, turn: int, batch: int) -> list[Array]:
    feeds: list[Array] = []
    for port in model.inputs:
        shape = tuple(d.lo if d.is_static else batch for d in port.partial_shape.dims)
        feeds.append(fed(port.node.name, port.element_type, shape, turn))
    return feeds


def _outcome(request: InferRequest, feed: Sequence[Array]) -> list[Array] | str:
    """The results, or the words of the error."""
    try:
        return list(request.infer([a.copy() for a in feed]).values())
    except irload.IRError as error:
        return f"{type(error).__name__}: {error}"


def _shaken(
    model: Model, feeds: Sequence[Sequence[Array]], rounding: Rounding, seed: int
) -> tuple[list[list[Array] | str], bool]:
    """The results of plain runs in which operands move, and whether numbers came close to overflowing."""
    compiled = CompiledModel(model, 1, optimize=False)
    variables: dict[str, Array] = {}
    found: list[list[Array] | str] = []
    overflows = False
    for feed in feeds:
        run = Shaken(compiled, dict(variables), rounding, seed)
        try:
            arrays, given = compiled._bound([a.copy() for a in feed])
            found.append([np.array(a) for a in compiled.execute(run, given, arrays)])
            variables = run.variables
            overflows |= run.overflows
        except irload.IRError as error:
            found.append(str(error))
    return found, overflows


def _planned(compiled: CompiledModel, expected: Expected, how: str) -> None:
    """The same inferences by the plan. `how`: what to say of it where they differ."""
    request = compiled.create_infer_request()
    for turn, (feed, plain) in enumerate(zip(expected.feeds, expected.results, strict=True)):
        where = f"{how}, inference {turn}"
        given = [a.copy() for a in feed]
        try:
            got = list(request.infer(given).values())
        except PlanInvalid as error:
            raise Wrong("invalid", f"{where}: {error}") from error
        except irload.IRError as error:
            if isinstance(plain, str):
                continue
            raise Wrong("error", f"{where}: {type(error).__name__}: {error}") from error
        if isinstance(plain, str):
            raise Wrong("accepted", f"{where}: gave results where plain raised {plain}")
        for before, after in zip(feed, given, strict=True):
            if before.tobytes() != after.tobytes():
                raise Wrong("input changed", where)
        for k, (a, fast) in enumerate(zip(plain, got, strict=True)):
            found = differs(a, fast, expected.tolerances[k])
            if found is not None:
                raise Wrong("differs", f"{where}, output {k}: {found}")
        _overwritten(got, given, where)


def _overwritten(got: Sequence[Array], given: Sequence[Array], where: str) -> None:
    """Write over results and inputs, as their owner may, having looked that nobody else shares them."""
    for k, result in enumerate(got):
        if any(np.shares_memory(result, other) for other in (*got[:k], *given)):
            raise Wrong("shared", f"{where}: output {k} shares memory with another array")
        if not result.flags.writeable:
            raise Wrong("shared", f"{where}: output {k} is not writeable")
    for array in (*got, *given):
        array.fill(1)


def _blunt(expected: Expected, wide: float) -> int:
    count = 0
    for k, tolerance in enumerate(expected.tolerances):
        spreads = [scale(r[k]) for r in expected.results if not isinstance(r, str)]
        count += tolerance is not None and tolerance > wide * max(spreads, default=1.0) > 0
    return count
