"""`irrun report`: writes a model as one HTML page."""

from __future__ import annotations

from pathlib import Path

import click

from irload.options import CompileOptions
from irload.record import record
from irrun.arguments import FileToWrite, compile_options, model_argument, shapes_option, weights_option
from irrun.completion import layer_names
from irrun.records import Feed, Source, records

SUFFIXES = (".html", ".htm")


@record()
class PageContents:
    """The optional contents of the page: a profile, a comparison, tensors."""

    profile: bool
    other: str | None
    against: Path | None
    tensors: tuple[str, ...]
    no_constants: bool


@click.command("report", no_args_is_help=True)
@model_argument
@click.argument("inputs", nargs=-1, metavar="[[NAME=]FILE]...", type=click.Path())
@click.option(
    "-o",
    "--output",
    type=FileToWrite(path_type=Path),
    metavar="FILE.html",
    help="The page to write; default: MODEL.html.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
@weights_option
@shapes_option
@click.option("--profile", is_flag=True, help="Measure the time of every step on the inputs.")
@click.option("--compare", "other", metavar="B", help="Compare the layers with B, given as for irrun compare.")
@click.option(
    "--diff", "against", type=click.Path(path_type=Path), metavar="B", help="Show the edits between MODEL and model B."
)
@click.option(
    "--tensor",
    "tensors",
    multiple=True,
    metavar="GLOB",
    shell_complete=layer_names,
    help="Include the outputs of these layers, computed on the inputs, as .npy downloads; may be repeated.",
)
@click.option(
    "--random", "seed", type=click.IntRange(0), default=0, metavar="SEED", help="Seed of random inputs; default: 0."
)
@click.option(
    "--no-constants",
    is_flag=True,
    help="Do not read the weights; omits the statistics of constants.",
)
@compile_options
@records(source=Source, feed=Feed, contents=PageContents, options=CompileOptions)
def command(
    source: Source,
    feed: Feed,
    output: Path | None,
    force: bool,
    contents: PageContents,
    threads: int | None,
    options: CompileOptions,
) -> int:
    r"""Write an HTML page that shows MODEL (.xml): its graph, layers, costs, memory, findings.

    The page is one self-contained file. Inputs are for --profile, --compare and --tensor; inputs without a file are
    random.

    \b
      irrun report model.xml -o report.html
      irrun report model.xml image.npy --profile --compare openvino
    """
    from irload import report
    from irload.loading import read_anyway
    from irrun.render import progress, safe, size_text, stdout

    target = output if output is not None else Path(source.model.with_suffix(".html").name)
    if target.suffix.lower() not in SUFFIXES:
        raise click.UsageError(f"the report is an HTML page, and {target} does not end in .html")
    if target.exists() and not force:
        raise FileExistsError(f"{target} exists already")
    runs = bool(feed.inputs) or contents.profile or bool(contents.tensors) or contents.other is not None
    with progress("reading the model"):
        if runs:
            loaded = source.read()
        else:
            loaded = source.reshaped(read_anyway(source.model, source.weights, limits=source.limits))
    values = [f.value for f in feed.gather(loaded, source.limits)] if runs else None
    with progress("writing the report"):
        page = report(
            loaded,
            values,
            constants=not contents.no_constants,
            profile=contents.profile,
            comparison=contents.other,
            difference=contents.against,
            tensors=contents.tensors,
            threads=threads,
            **options,
        )
        page.save(target, force=force)
    stdout().print(f"{safe(target)}: {len(page.data['layers'])} layers, {size_text(len(page.html))}", soft_wrap=True)
    return 0
