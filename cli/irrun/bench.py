"""`irrun bench`: latency, throughput and memory of a model, alone or beside OpenVINO."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irload import Limits
from irrun.arguments import compile_options, json_option, model_argument, shapes_of, shapes_option, weights_option

if TYPE_CHECKING:
    from irload.benchmark import Benchmark, Side

Document = dict[str, Any]
SHARES = {"min": 0, "p50": 50, "p90": 90, "p95": 95, "p99": 99, "max": 100}
BINS = 16
"""Rows of the histogram; the last one has all that is beyond p99."""
WIDTH = 40
"""Characters of its longest bar, where the terminal is not too narrow for it."""
MARGIN = 14
"""Characters beside a bar and its count."""
FAR = 4.0
"""Ratio of p99 to the least latency beyond which the edges of the histogram have equal ratios."""


@click.command("bench", no_args_is_help=True)
@model_argument
@click.argument("inputs", nargs=-1, metavar="[[NAME=]FILE]...", type=click.Path())
@weights_option
@click.option("--random", "seed", type=click.IntRange(0), default=0, metavar="SEED", help="Seed of other inputs.")
@shapes_option
@click.option("--seconds", type=click.FloatRange(0, min_open=True), default=5.0, help="How long to measure (5).")
@click.option("--runs", type=click.IntRange(1), metavar="N", help="Inferences of each request, instead of --seconds.")
@click.option("--warm-up", type=click.FloatRange(0), default=0.5, metavar="SECONDS", help="Before measuring (0.5).")
@click.option("--requests", type=click.IntRange(1), default=1, metavar="N", help="Inferences at a time (1).")
@click.option("--against", type=click.Choice(["openvino"]), help="Take turns with that runtime and show ratios.")
@compile_options
@json_option
def command(
    model: Path,
    inputs: tuple[str, ...],
    weights: Path | None,
    seed: int,
    shapes: tuple[str, ...],
    seconds: float,
    runs: int | None,
    warm_up: float,
    requests: int,
    against: str | None,
    limits: Limits,
    as_json: bool,
    **options: Any,
) -> int:
    r"""Measure inferences of MODEL (.xml): latency by percentiles, throughput, compiling, memory.

    Inputs are those of run; what no file gives is random.

    \b
      irrun bench model.xml --threads 1
      irrun bench model.xml image.npy --seconds 10 --requests 4 --against openvino
    """
    import time

    from irload import read_model
    from irload.benchmark import benchmark
    from irrun.feed import gather
    from irrun.render import progress, show_json
    from irrun.suggest import advice

    gc.enable()  # as it is in the programs for which this is measured
    started = time.perf_counter()
    with progress("reading the model"):
        loaded = read_model(model, weights, limits=limits)
        if shapes:
            loaded.reshape(shapes_of(loaded, shapes))
    reading = time.perf_counter() - started
    fed = gather(loaded.inputs, inputs, seed, limits, lambda ports: advice(loaded, ports))
    with progress("measuring"):
        found = benchmark(
            loaded,
            [f.value for f in fed],
            seconds=seconds,
            runs=runs,
            warm_up=warm_up,
            requests=requests,
            against=against,
            **options,
        )
    document: Document = {
        "model": str(model),
        "inputs": [
            {"name": p.any_name, "type": p.element_type.name, "shape": list(f.value.shape)}
            for p, f in zip(loaded.inputs, fed, strict=True)
        ],
        "read_seconds": reading,
        "requests": found.requests,
        "threads": found.threads,
        "sides": [_side(side) for side in found.sides],
        "ratio": {name: found.ratio(share) for name, share in SHARES.items()} if against else None,
    }
    if as_json:
        show_json(document)
    else:
        _render(document, found)
    return 0


def _side(side: Side) -> Document:
    return {
        "name": side.name,
        "compile_seconds": side.compile,
        "first_seconds": side.first,
        "memory": side.memory,
        "inferences": len(side.latencies),
        "wall_seconds": side.wall,
        "throughput": side.throughput,
        "latency": {name: side.percentile(share) for name, share in SHARES.items()} | {"mean": side.mean},
        "histogram": _histogram(side),
    }


def _histogram(side: Side) -> list[Document]:
    """Counts between edges from the least latency to p99, of equal ratio where they are far apart, and beyond."""
    import numpy as np

    latencies = np.array(side.latencies)
    least, most, greatest = (side.percentile(share) for share in (0, 99, 100))
    space = np.geomspace if least > 0 and most > FAR * least else np.linspace
    edges = space(least, most, BINS) if most > least else np.array([least])
    edges = np.append(edges, greatest) if greatest > edges[-1] or len(edges) < 2 else edges
    counts, _ = np.histogram(latencies, edges) if edges[-1] > edges[0] else (np.array([len(latencies)]), edges)
    pairs = zip(edges[:-1], edges[1:], counts, strict=True)
    return [{"from": float(a), "to": float(b), "count": int(n)} for a, b, n in pairs]


# -- for people --------------------------------------------------------------------------------------------------------


def _render(document: Document, found: Benchmark) -> None:
    from irrun.render import safe, stdout, table

    fed = ", ".join(f"{i['name']} {i['type']}[{','.join(map(str, i['shape']))}]" for i in document["inputs"])
    threads, requests = found.threads, found.requests
    how = f"{threads} thread{'' if threads == 1 else 's'}"
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
    for side in document["sides"]:
        stdout().print(f"\n{side['name']}" if len(document["sides"]) > 1 else "")
        _render_histogram(side["histogram"])


def _rows(sides: list[Document]) -> Iterator[tuple[str, list[Any], Callable[[Any], str]]]:
    """A row for each measure: its name, the value of each side, and how to write one."""
    from irrun.render import size_text

    yield "compile", [side["compile_seconds"] for side in sides], _seconds
    yield "first inference", [side["first_seconds"] for side in sides], _seconds
    yield "memory", [side["memory"] for side in sides], size_text
    for name in (*SHARES, "mean"):
        yield f"latency {name}", [side["latency"][name] for side in sides], _seconds
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
    """Seconds for people: `1.23 ms`."""
    for unit, size in (("s", 1.0), ("ms", 1e-3)):
        if value >= size:
            return f"{value / size:.4g} {unit}"
    return f"{value * 1e6:.4g} µs"
