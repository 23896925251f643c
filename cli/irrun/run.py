"""`irrun run`: runs a model on inputs and shows its outputs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irload.options import CompileOptions, Options
from irload.record import record
from irrun.arguments import (
    FileToWrite,
    compile_options,
    json_option,
    model_argument,
    pin_option,
    shapes_option,
    strict_option,
    weights_option,
)
from irrun.document import Document
from irrun.records import Feed, Source, records

if TYPE_CHECKING:
    from irload import CompiledModel, Model


@record()
class ResultOptions:
    """Which values are shown, and the files of outputs."""

    top: int | None
    labels: Path | None
    output: str | None
    force: bool

    def names(self) -> Sequence[str]:
        """Read the names for --top. Raises UsageError, InputInvalid, OSError."""
        if self.labels is None:
            return ()
        if self.top is None:
            raise click.UsageError("--labels requires --top N, whose values it names")
        from irload.batch.labels import read_labels

        return read_labels(self.labels)


@record()
class Details:
    """Options that show more than the results. They require the graph, which a plan from the cache does not contain."""

    emulate: str | None
    profile: bool
    explain: bool
    dump: Path | None
    layers: tuple[str, ...]
    finite: bool
    subnormals: bool
    force: bool

    @property
    def needs_graph(self) -> bool:
        """True if any option is given."""
        given = (self.emulate, self.profile, self.explain, self.dump, self.layers, self.finite, self.subnormals)
        return any(value not in (None, False, ()) for value in given)


@record()
class Compiled:
    """A compiled model, the seconds of planning, and the emulated layers. `keep` caches its plan."""

    model: CompiledModel
    seconds: float
    emulated: list[str]
    keep: Any


@click.command("run", no_args_is_help=True)
@model_argument
@click.argument("inputs", nargs=-1, metavar="[[NAME=]FILE]...", type=click.Path())
@weights_option
@pin_option
@click.option(
    "--random", "seed", type=click.IntRange(0), metavar="SEED", help="Fill inputs without a file with random values."
)
@shapes_option
@click.option(
    "--top",
    type=click.IntRange(1),
    metavar="N",
    help="Show the N largest values along the last axis; axes of size 1 at the end are ignored.",
)
@click.option("--labels", type=click.Path(path_type=Path), metavar="FILE", help="Names for --top, one per line.")
@click.option("-o", "--output", type=FileToWrite(), help="Write outputs: FILE.npz, FILE.npy or a folder.")
@click.option("--force", is_flag=True, help="Let -o and --dump replace existing files.")
@compile_options
@strict_option
@click.option(
    "--emulate",
    type=click.Choice(["openvino-cpu"]),
    help="Compute like OpenVINO's CPU plugin where it departs from the specification.",
)
@click.option("--profile", is_flag=True, help="Also show the time of every step.")
@click.option("--explain", is_flag=True, help="Also explain the plan: fusions, kernels with reasons, memory.")
@click.option(
    "--dump", type=FileToWrite(path_type=Path), metavar="DIR", help="Write every layer's outputs to this folder."
)
@click.option("--layers", multiple=True, metavar="PATTERN", help="Only these layers for --dump; may be repeated.")
@click.option(
    "--check-finite",
    "finite",
    is_flag=True,
    help="Report the first layers that output NaN or infinity.",
)
@click.option("--no-cache", is_flag=True, help="Neither load the plan from the cache nor store it.")
@click.option("--subnormals", is_flag=True, help="With --check-finite, report subnormal numbers, too.")
@json_option
@records(source=Source, feed=Feed, results=ResultOptions, details=Details, options=CompileOptions)
def command(
    source: Source,
    feed: Feed,
    results: ResultOptions,
    details: Details,
    threads: int | None,
    options: CompileOptions,
    no_cache: bool,
    as_json: bool,
) -> int:
    r"""Run MODEL (.xml) on inputs and show its outputs.

    Inputs are .npy or .npz files, in the order of the model's inputs or as NAME=FILE.

    \b
      irrun model.xml image.npy --top 5 --labels names.txt
      irrun model.xml ids=ids.npy mask=mask.npy -o result.npz
      irrun model.xml --random 0 --shape 'image[1,3,224,224]'
    """
    from irrun.notice import Notice
    from irrun.render import progress, show_json
    from irrun.run_report import render, report

    if details.needs_graph:
        from irrun.intermediates import require_options

        require_options(details.dump, details.layers, finite=details.finite, subnormals=details.subnormals)
    names = results.names()
    options["cache"] = not (no_cache or source.shapes or details.needs_graph)
    options["optimize"] = details.emulate is None
    compiled = _compiled(source, Options.of(options, threads, file=str(source.model)), details.emulate)
    model = compiled.model
    notice = Notice()
    notice(model.differences)
    fed = feed.gather(model, source.limits)
    files = None
    if results.output is not None:
        from irrun.output_files import plan_files

        files = plan_files(results.output, model.outputs, force=results.force)
    values = [f.value for f in fed]
    seen = _intermediates(model, values, details)
    planning = time.perf_counter()
    with progress("planning"):
        model.prepare(values)  # returns at once for a static model, which is planned already
    cached = model.from_cache  # False if no cached plan serves these shapes
    started = time.perf_counter()
    with progress("running"):
        result = model(values)
    seconds = compiled.seconds + started - planning, time.perf_counter() - started
    notice(model.differences)
    if names:
        from irload.batch.labels import require_fit
        from irload.core.shape import without_unit_axes

        sizes = [(1, *without_unit_axes(a.shape, 2))[-1] for a in result.values()]
        require_fit(names, [p.any_name for p in model.outputs], sizes)
    if files is not None:
        from irrun.output_files import write_files

        write_files(files, result, force=results.force)
    document = report(source.model, model, fed, result, seconds, results.top, names, cached=cached)
    document["warnings"] = model.warnings
    document |= seen
    if details.emulate is not None:
        document["emulated"] = compiled.emulated
    document["written"] = [] if files is None else [str(f) for f in files]
    document |= _plan(model, values, details)
    if as_json:
        show_json(document)
    else:
        render(document)
        _render_details(document, details)
    compiled.keep(model)
    return 0 if not details.finite or document["finite"]["passed"] else 1


def _compiled(source: Source, options: Options, emulate: str | None) -> Compiled:
    """Load the plan of the model from the cache, or read and compile it."""
    from irload.compiling import ModelFile
    from irrun.render import progress

    file = ModelFile(source.model, options, weights=source.weights, sha256=source.pins)
    started = time.perf_counter()
    cached = file.find()
    if cached is not None:
        return Compiled(cached, time.perf_counter() - started, [], lambda _: None)
    with progress("reading the model"):
        model = source.reshaped(file.read())
        emulated = _emulated(model, emulate)
    started = time.perf_counter()
    with progress("planning"):
        compiled = file.compile(model)
    return Compiled(compiled, time.perf_counter() - started, emulated, file.keep)


def _emulated(model: Model, target: str | None) -> list[str]:
    """Configure the model to emulate OpenVINO's CPU plugin, and report the affected layers on stderr."""
    if target is None:
        return []
    from irload.deviations.emulation import emulate
    from irrun.render import counted, safe, stderr

    layers = [node.where().layer for node in emulate(model, target)]
    affected = counted(len(layers), "layer") if layers else "no layer of this model"
    stderr().print(f"irrun: --emulate {target} changes {affected}", soft_wrap=True)
    for layer in layers[:20]:
        stderr().print(f"irrun:   {safe(layer)}", soft_wrap=True)
    return layers


def _intermediates(model: CompiledModel, values: list[Any], details: Details) -> Document:
    """Return the documents of --dump and --check-finite."""
    seen: Document = {}
    if details.dump is None and not details.finite:
        return seen
    from irrun.intermediates import dumped, nonfinite
    from irrun.render import progress

    if details.dump is not None:
        with progress("writing the outputs of the layers"):
            seen["dump"] = dumped(model, values, details.dump, details.layers, force=details.force)
    if details.finite:
        with progress("searching for NaN and infinities"):
            seen["finite"] = nonfinite(model, values, subnormals=details.subnormals)
    return seen


def _plan(model: CompiledModel, values: list[Any], details: Details) -> Document:
    """Return the documents of --explain and --profile."""
    documents: Document = {}
    if details.explain:
        documents["plan"] = model.explain(values)
    if details.profile:
        from irrun.plan import timed

        documents["profile"] = timed(model.profile(values))
    return documents


def _render_details(document: Document, details: Details) -> None:
    if details.needs_graph:
        from irrun.intermediates import render_intermediates
        from irrun.plan import render_plan

        render_plan(document)
        render_intermediates(document)
