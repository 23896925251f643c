"""`irrun bench`: latency, throughput and memory of a model, alone or compared with OpenVINO."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irload.options import CompileOptions
from irload.record import record
from irrun.arguments import compile_options, json_option, model_argument, shapes_option, weights_option
from irrun.document import Document
from irrun.records import Feed, Source, records

if TYPE_CHECKING:
    from irload.diagnostics.benchmark import Benchmark, Contender

SHARES = {"min": 0, "p50": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}
MAX_COUNT = 1024
"""Upper bound of each number of --streams."""
BINS = 16
"""Rows of the histogram; the last row counts all latencies beyond p99."""
WIDTH = 40
"""Characters of the longest bar, if the terminal is wide enough."""
MARGIN = 14
"""Characters of a line of the histogram other than the bar and its count."""
FAR = 4.0
"""Ratio of p99 to the minimum latency above which the histogram's bins are geometric instead of linear."""


def _counts(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[int, ...]:
    words = [] if text is None else text.split(",")
    if not all(word.isascii() and word.isdigit() and 0 < int(word) <= MAX_COUNT for word in words):
        raise click.BadParameter(f"'{text}' is not of the form 1,2,4 (up to {MAX_COUNT})", ctx, param)
    return tuple(map(int, words))


@record()
class Measurement:
    """How inferences are measured: the keyword arguments of `benchmark`."""

    seconds: float
    runs: int | None
    warm_up: float
    requests: int
    against: str | None


@click.command("bench", no_args_is_help=True)
@model_argument
@click.argument("inputs", nargs=-1, metavar="[[NAME=]FILE]...", type=click.Path())
@weights_option
@click.option(
    "--random", "seed", type=click.IntRange(0), default=0, metavar="SEED", help="Seed of random inputs; default: 0."
)
@shapes_option
@click.option(
    "--seconds",
    type=click.FloatRange(0, min_open=True),
    metavar="SECONDS",
    default=5.0,
    help="Seconds to measure; default: 5.",
)
@click.option("--runs", type=click.IntRange(1), metavar="N", help="Inferences per request, instead of --seconds.")
@click.option(
    "--warm-up", type=click.FloatRange(0), default=0.5, metavar="SECONDS", help="Seconds of warm-up; default: 0.5."
)
@click.option("--requests", type=click.IntRange(1), default=1, metavar="N", help="Concurrent inferences; default: 1.")
@click.option("--streams", callback=_counts, metavar="N,N…", help="Also measure throughput at these concurrencies.")
@click.option(
    "--baseline",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Compare with the --json output of an earlier run.",
)
@click.option("--against", type=click.Choice(["openvino"]), help="Alternate with OpenVINO and show ratios.")
@compile_options
@json_option
@records(source=Source, feed=Feed, measurement=Measurement, options=CompileOptions)
def command(
    source: Source,
    feed: Feed,
    measurement: Measurement,
    streams: tuple[int, ...],
    baseline: Path | None,
    threads: int | None,
    options: CompileOptions,
    as_json: bool,
) -> int:
    r"""Measure inferences of MODEL (.xml): latency percentiles, throughput, compile time, memory.

    Inputs are given as for irrun run; inputs without a file are random.

    \b
      irrun bench model.xml --threads 1
      irrun bench model.xml image.npy --seconds 10 --requests 4 --against openvino
      irrun bench model.xml --json > before.json
      irrun bench model.xml --baseline before.json --streams 1,2,4
    """
    import time
    from dataclasses import asdict

    from irload.diagnostics.benchmark import benchmark
    from irload.system.machine import thread_count
    from irrun.baseline import compared, read_baseline, render_baseline
    from irrun.render import progress, show_json

    before = None if baseline is None else read_baseline(baseline)
    gc.enable()  # as in programs that use irload, whose latency is measured here
    started = time.perf_counter()
    with progress("reading the model"):
        loaded = source.read()
    reading = time.perf_counter() - started
    fed = feed.gather(loaded, source.limits)

    def measured(threads: int | None, **changed: Any) -> Benchmark:
        how: dict[str, Any] = {**asdict(measurement), **changed}
        return benchmark(loaded, [f.value for f in fed], threads=threads, **how, **options)

    with progress("measuring"):
        timings = measured(threads)
        total = thread_count(threads)
        several = [measured(max(1, total // n), requests=n) for n in streams]
    document: Document = {
        "model": str(source.model),
        "inputs": [
            {"name": p.any_name, "type": p.element_type.name, "shape": list(f.value.shape)}
            for p, f in zip(loaded.inputs, fed, strict=True)
        ],
        "read_seconds": reading,
        "requests": timings.requests,
        "threads": timings.threads,
        "sides": [_side(side) for side in timings.sides],
        "streams": [_streams(each) for each in several],
        "ratio": {name: timings.ratio(share) for name, share in SHARES.items()} if measurement.against else None,
    }
    if before is not None and baseline is not None:
        document["baseline"] = compared(document, before, baseline)
    if as_json:
        show_json(document)
        return 0
    _render(document, timings)
    if "baseline" in document:
        render_baseline(document["baseline"])
    return 0


def _streams(benchmark: Benchmark) -> Document:
    """Measure throughput and median latency of each side at one concurrency."""
    sides = [{"name": s.name, "throughput": s.throughput, "p50": s.percentile(50)} for s in benchmark.sides]
    return {"requests": benchmark.requests, "threads": benchmark.threads, "sides": sides}


def _side(side: Contender) -> Document:
    return {
        "name": side.name,
        "compile_seconds": side.compile,
        "first_seconds": side.first,
        "memory": side.memory,
        "inferences": len(side.latencies),
        "wall_seconds": side.wall,
        "throughput": side.throughput,
        "precision": side.precision,
        "default_precision": side.default,
        "interval": list(side.interval()),
        "latency": {name: side.percentile(share) for name, share in SHARES.items()} | {"mean": side.mean},
        "histogram": _histogram(side),
    }


def _histogram(side: Contender) -> list[Document]:
    """Count latencies in bins from the minimum to p99, geometric if the range is wide, and one bin beyond p99."""
    import numpy as np

    latencies = np.array(side.latencies)
    least, most, greatest = (side.percentile(share) for share in (0, 99, 100))
    space = np.geomspace if least > 0 and most > FAR * least else np.linspace
    edges = space(least, most, BINS) if most > least else np.array([least])
    edges = np.append(edges, greatest) if greatest > edges[-1] or len(edges) < 2 else edges
    counts, _ = np.histogram(latencies, edges) if edges[-1] > edges[0] else (np.array([len(latencies)]), edges)
    pairs = zip(edges[:-1], edges[1:], counts, strict=True)
    return [{"from": float(a), "to": float(b), "count": int(n)} for a, b, n in pairs]


# -- text output
# --------------------------------------------------------------------------------------------------------


def _render(document: Document, benchmark: Benchmark) -> None:
    from irrun.render import counted, safe, stdout, table

    fed = ", ".join(f"{i['name']} {i['type']}[{','.join(map(str, i['shape']))}]" for i in document["inputs"])
    threads, requests = benchmark.threads, benchmark.requests
    how = counted(threads, "thread")
    how += f", {requests} requests at a time" if requests > 1 else ""
    stdout().print(f"{safe(document['model'])}: {safe(fed) or 'no inputs'}; {how}", soft_wrap=True)
    stdout().print(f"read in {_seconds(document['read_seconds'])}\n")
    sides = document["sides"]
    columns = [side["name"] for side in sides] + (["openvino / irload"] if len(sides) > 1 else [])
    shown = table("", *columns, right=columns)
    for name, values, text in _rows(sides):
        cells = ["–" if value is None else text(value) for value in values]
        if len(sides) > 1:
            cells.append(f"{values[1] / values[0]:,.2f} ×" if text is _seconds and values[0] else "")
        shown.add_row(name, *cells)
    stdout().print(shown)
    for side in sides:
        if side["default_precision"] not in (None, side["precision"]):
            default, used = side["default_precision"], side["precision"]
            stdout().print(
                f"{side['name']} computes in {used} here, as irload does; its default on this processor is {default} "
                f"(--precision {default} runs both in {default})"
            )
    _render_streams(document["streams"])
    for side in document["sides"]:
        stdout().print(f"\n{side['name']}" if len(document["sides"]) > 1 else "")
        _render_histogram(side["histogram"])


def _render_streams(rows: list[Document]) -> None:
    from irrun.render import stdout, table

    if not rows:
        return
    names = [side["name"] for side in rows[0]["sides"]]
    columns = ["threads per request", *(f"{name} {measure}" for name in names for measure in ("per second", "p50"))]
    shown = table("concurrency", *columns, right=("concurrency", *columns))
    for row in rows:
        cells = [text for side in row["sides"] for text in (_rate(side["throughput"]), _seconds(side["p50"]))]
        shown.add_row(str(row["requests"]), str(row["threads"]), *cells)
    stdout().print()
    stdout().print(shown)


def _rows(sides: list[Document]) -> Iterator[tuple[str, list[Any], Callable[[Any], str]]]:
    """Return a row per measure: its name, the value of each side, and its formatter."""
    from irrun.render import size_text

    yield "compile", [side["compile_seconds"] for side in sides], _seconds
    yield "first inference", [side["first_seconds"] for side in sides], _seconds
    yield "memory", [side["memory"] for side in sides], size_text
    for name in (*SHARES, "mean"):
        yield f"latency {name}", [side["latency"][name] for side in sides], _seconds
    yield "p50, 95 % low", [side["interval"][0] for side in sides], _seconds
    yield "p50, 95 % high", [side["interval"][1] for side in sides], _seconds
    yield "inferences", [side["inferences"] for side in sides], "{:,}".format
    yield "per second", [side["throughput"] for side in sides], _rate


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value >= 1000 else f"{value:.4g}"


def _render_histogram(bins: list[Document]) -> None:
    from irrun.render import stdout

    console = stdout()
    most = max(b["count"] for b in bins)
    width = min(WIDTH, console.width - MARGIN - len(f"{most:,}"))
    for k, b in enumerate(bins):
        bar = "█" * round(width * b["count"] / most) or ("▏" if b["count"] else "")
        sign = "≥" if k == len(bins) - 1 and len(bins) > 1 else " "
        console.print(f"{sign}{_seconds(b['from']):>10}  {bar} {b['count']:,}")


def _seconds(value: float) -> str:
    """Format seconds: `1.23 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value * 1e6:.4g} µs"
