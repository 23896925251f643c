"""Compares the plan of a program with plain execution, at 1, 2 and 3 threads, repeatedly.

At one of these thread counts the plan's sanitizer checks each step; at the others the plan runs normally and, if the
plan can be saved, once more from its file.
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
from irload.runtime.compiled_model import CompiledModel, InferRequest
from tests.fuzz.programs.feed import fed
from tests.fuzz.programs.near import INSIDE, ROUNDINGS, RoundingModel, differs, scale
from tests.fuzz.programs.thresholds import all_in_bf16, lowered_thresholds
from tests.fuzz.programs.tolerances import Tolerances
from tests.fuzz.programs.widened import rounded_inside, widened
from tests.harness.cached import from_cache_file
from tests.harness.case import Array

THREADS = (1, 2, 3)
BATCHES = (2, 3, 5, 1, 4)
"""Values of dynamic dims in consecutive inferences: plans are traced for the second one."""
THOROUGH = 16
"""Number of plain runs with perturbed operands from which a tolerance is measured before a difference is reported.

In a single run, a sum with cancellation may by chance move by much less than the largest possible distance.
"""


class Wrong(Exception):
    """A program whose plan is wrong: `kind` is the category."""

    def __init__(self, kind: str, words: str) -> None:
        super().__init__(words)
        self.kind = kind


@dataclass
class Played:
    """The outcome of a program that ran."""

    refused: str = ""
    """The error that both plain execution and the plan raised."""
    exact: int = 0
    """Number of outputs that must be equal."""
    blunt: int = 0
    """Number of outputs with a tolerance too wide to be meaningful."""
    outputs: int = 0
    runtime: str = ""
    """The verdict of OpenVINO's runtime: "agrees", or why it was not compared."""


@dataclass
class Expected:
    """The plain results of a sequence of inferences; for a program in 16 bits, the results of its f32 twin."""

    feeds: list[list[Array]]
    results: list[list[Array] | str]
    tolerances: list[float | None] = field(default_factory=list[float | None])
    measured: Tolerances | None = None

    def differs(self, k: int, plain: Array, fast: Array) -> str | None:
        """How a planned result of output `k` differs, or None.

        Before a difference is reported, the tolerance is measured again from `THOROUGH` runs.
        """
        difference = differs(plain, fast, self.tolerances[k])
        if difference is None or self.tolerances[k] is None or self.measured is None:
            return difference
        self.tolerances = self.measured.after(THOROUGH)
        return differs(plain, fast, self.tolerances[k])


def play(xml: bytes, blob: bytes, *, runtime: bool = False, threads: Sequence[int] = THREADS) -> Played:
    """Run the program in all configurations. Raises Wrong."""
    model = irload.read_model(xml, blob)
    traits = set(re.search(rb'<net name="([^"]*)"', xml).group(1).decode().split("-"))  # type: ignore[union-attr]
    rounding = ROUNDINGS["bf16" if "bf16" in traits else "f32"]
    expected = in_short(model, xml, blob) if "short" in traits else plainly(model, rounding)
    played = Played(outputs=len(model.outputs))
    refused = [r for r in expected.results if isinstance(r, str)]
    played.refused = refused[0] if len(refused) == len(expected.results) else ""
    played.exact = sum(t is None for t in expected.tolerances)
    played.blunt = _blunt(expected, rounding.too_wide)
    options = {"precise": "precise" in traits, "precision": "auto" if "bf16" in traits else "f32"}
    small = lowered_thresholds() if "lowered" in traits else nullcontext()
    with small, all_in_bf16() if "bf16" in traits else nullcontext():
        watched = threads[zlib.crc32(xml) % len(threads)]
        for count in threads:
            with sanitizing(count == watched):
                compiled = irload.compile_model(model, count, **options)
                _planned(compiled, expected, f"{count} threads")
                again = None if count == watched else from_cache_file(compiled)
                if again is not None:
                    _planned(again, expected, f"{count} threads, a cached plan")
    if runtime:
        from tests.fuzz.programs.oracle import compare

        skipped = "not finite" if "odd" in traits else "rounds otherwise" if "short" in traits else ""
        played.runtime = skipped or compare(xml, blob, model, expected)
    return played


def in_short(model: Model, xml: bytes, blob: bytes) -> Expected:
    """The plain results of the f32 twin of a program in f16 or bf16; plans round them to 16 bits."""
    feeds = [_feed(model, turn, batch) for turn, batch in _turns(model)]
    twin = irload.read_model(*widened(xml, blob))
    rounding = INSIDE.get(rounded_inside(model), ROUNDINGS["f32"])
    wide = [[a.astype(port.element_type.dtype) for a, port in zip(feed, twin.inputs, strict=True)] for feed in feeds]
    plain = _outcome(irload.compile_model(model, optimize=False).create_infer_request(), feeds[0])
    expected = plainly(twin, rounding, wide)
    if isinstance(plain, str) != isinstance(expected.results[0], str):
        raise Wrong("refused", f"either the program or its f32 twin fails: {plain}, {expected.results[0]}")
    expected.feeds = feeds
    return expected


def plainly(
    model: Model, rounding: RoundingModel = ROUNDINGS["f32"], feeds: list[list[Array]] | None = None
) -> Expected:
    """The plain results, and the tolerances of planned ones."""
    if feeds is None:
        feeds = [_feed(model, turn, batch) for turn, batch in _turns(model)]
    request = irload.compile_model(model, optimize=False).create_infer_request()
    stateless = not any(True for graph in model.walk() for _ in graph.sinks)
    results = [_outcome(request, feed) for feed in (feeds[:-1] if stateless else feeds)]
    expected = Expected(feeds, [*results, results[0]] if stateless else results)
    expected.measured = Tolerances(model, rounding, expected.feeds[: len(results)], results)
    expected.tolerances = expected.measured.after(rounding.runs)
    return expected


def _turns(model: Model) -> list[tuple[int, int]]:
    """(index, value of dynamic dims) of each inference."""
    if any(not p.partial_shape.is_static for p in model.inputs):
        return [*enumerate(BATCHES), (0, BATCHES[0])]
    return [(0, 1), (1, 1), (0, 1)]


def _feed(model: Model, turn: int, batch: int) -> list[Array]:
    feeds: list[Array] = []
    for port in model.inputs:
        shape = tuple(d.lo if d.is_static else batch for d in port.partial_shape.dims)
        feeds.append(fed(port.node.name, port.element_type, shape, turn))
    return feeds


def _outcome(request: InferRequest, feed: Sequence[Array]) -> list[Array] | str:
    """The results, or the message of the error."""
    try:
        return list(request.infer([a.copy() for a in feed]).values())
    except irload.IRError as error:
        return f"{type(error).__name__}: {error}"


def _planned(compiled: CompiledModel, expected: Expected, how: str) -> None:
    """Run the same inferences by the plan. `how` names the configuration in failures."""
    request = compiled.create_infer_request()
    for turn, (feed, plain) in enumerate(zip(expected.feeds, expected.results, strict=True)):
        where = f"{how}, inference {turn}"
        inputs = [a.copy() for a in feed]
        try:
            outputs = list(request.infer(inputs).values())
        except PlanInvalid as error:
            raise Wrong("invalid", f"{where}: {error}") from error
        except irload.IRError as error:
            if isinstance(plain, str):
                continue
            raise Wrong("error", f"{where}: {type(error).__name__}: {error}") from error
        if isinstance(plain, str):
            raise Wrong("accepted", f"{where}: gave results where plain raised {plain}")
        for before, after in zip(feed, inputs, strict=True):
            if before.tobytes() != after.tobytes():
                raise Wrong("input changed", where)
        for k, (a, fast) in enumerate(zip(plain, outputs, strict=True)):
            if fast.dtype != compiled.outputs[k].element_type.dtype:
                raise Wrong("type", f"{where}, output {k}: {fast.dtype}, not {compiled.outputs[k].element_type}")
            difference = expected.differs(k, a, fast)
            if difference is not None:
                raise Wrong("differs", f"{where}, output {k}: {difference}")
        _overwritten(outputs, inputs, where)


def _overwritten(outputs: Sequence[Array], inputs: Sequence[Array], where: str) -> None:
    """Overwrite results and inputs, as a caller may, after checking that they share no memory."""
    for k, result in enumerate(outputs):
        if any(np.shares_memory(result, other) for other in (*outputs[:k], *inputs)):
            raise Wrong("shared", f"{where}: output {k} shares memory with another array")
        if not result.flags.writeable:
            raise Wrong("shared", f"{where}: output {k} is not writeable")
    for array in (*outputs, *inputs):
        array.fill(1)


def _blunt(expected: Expected, too_wide: float) -> int:
    """The number of outputs whose tolerance exceeds this share of the spread of their values."""
    count = 0
    for k, tolerance in enumerate(expected.tolerances):
        spreads = [scale(r[k]) for r in expected.results if not isinstance(r, str)]
        count += tolerance is not None and tolerance > too_wide * max(spreads, default=1.0) > 0
    return count
