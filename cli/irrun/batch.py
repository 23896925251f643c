"""`irrun batch`: runs a model over many inputs, restartable, and shows the progress."""

from __future__ import annotations

import gc
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irload.options import CompileOptions
from irrun.arguments import (
    THREADS,
    FileToWrite,
    json_option,
    kernel_options,
    model_argument,
    pin_option,
    shapes_of,
    shapes_option,
    strict_option,
    weights_option,
)
from irrun.batch_options import Course, Images, Outputs, SampleOptions, numbers
from irrun.generation_options import generation_options, given_settings
from irrun.records import Source, records

if TYPE_CHECKING:
    from irload.inference import ShapeLike


@click.command("batch", no_args_is_help=True)
@model_argument
@click.argument("data", nargs=-1, required=True, metavar="[NAME=]DATA...")
@click.option("-o", "--output", type=FileToWrite(), required=True, help="A folder, or a .parquet, .jsonl or .csv file.")
@click.option(
    "--format", "kind", type=click.Choice(["npz", "npy"]), help="Format of files in the folder: npz (default) or npy."
)
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    metavar="N",
    help="Maximum samples per inference; default: the fastest number, which the job measures.",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    metavar="N",
    default=1,
    show_default=True,
    help="Worker processes, or Ray actors.",
)
@click.option("--threads", type=click.IntRange(1), metavar="N", help=f"Threads, in total over all workers; {THREADS}")
@click.option("--resume", is_flag=True, help="Continue an interrupted job, and repeat failed items.")
@click.option("--force", is_flag=True, help="Replace existing outputs and restart the job.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first failed item.")
@click.option("--keep-going", is_flag=True, help="Do not stop if the first items all fail for the same reason.")
@click.option(
    "--verify-inputs",
    is_flag=True,
    help="Detect changed inputs by SHA-256 instead of size and time.",
)
@click.option(
    "--column",
    "columns",
    multiple=True,
    metavar="[NAME=]COLUMN",
    help="The column for an input; without NAME, for the only input.",
)
@click.option("--cast", is_flag=True, help="Convert values even if precision or range is lost.")
@click.option("--top", type=click.IntRange(1), metavar="N", help="Number of largest values in a .jsonl; default: 5.")
@click.option("--labels", type=click.Path(path_type=Path), metavar="FILE", help="Names of the values, one per line.")
@click.option(
    "--resize",
    metavar="WxH",
    callback=numbers((1, 2), int, "224x224 or 256"),
    help="Images: resize to WxH, or the shorter side to N.",
)
@click.option(
    "--crop", metavar="WxH", callback=numbers((2,), int, "224x224"), help="Images: crop the centre to this size."
)
@click.option(
    "--layout",
    type=click.Choice(["NCHW", "NHWC"], case_sensitive=False),
    help="Images: axis order; default: detected from the channel axis.",
)
@click.option(
    "--mean",
    metavar="M,M,M",
    callback=numbers((1, 3), float, "123.7,116.3,103.5"),
    help="Images: values to subtract, per channel.",
)
@click.option(
    "--scale",
    metavar="S,S,S",
    callback=numbers((1, 3), float, "58.4,57.1,57.4"),
    help="Images: divisors after --mean, per channel.",
)
@click.option(
    "--channels", type=click.Choice(["rgb", "bgr"]), help="Images: order of the colour channels; default: rgb."
)
@click.option("--chat", is_flag=True, help="Texts: apply the folder's chat template to each text, as a user message.")
@generation_options
@kernel_options
@strict_option
@weights_option
@pin_option
@shapes_option
@click.option(
    "--engine",
    type=click.Choice(["local", "ray"]),
    default="local",
    show_default=True,
    help="Run in local processes or on Ray.",
)
@click.option(
    "--address", metavar="ADDRESS", help="Ray: address of a running cluster; default: start one on this machine."
)
@json_option
@records(source=Source, outputs=Outputs, images=Images, samples=SampleOptions, course=Course, options=CompileOptions)
def command(
    source: Source,
    data: tuple[str, ...],
    outputs: Outputs,
    images: Images,
    samples: SampleOptions,
    course: Course,
    threads: int | None,
    options: CompileOptions,
    as_json: bool,
    **settings: Any,
) -> int:
    r"""Run MODEL (.xml, or the folder of a text model) over many inputs.

    DATA are folders, files or quoted patterns of .npy (one sample or a stack), .npz (arrays named after the inputs),
    images, or .parquet (columns named after the inputs; other columns are copied to the output). For a model with
    several inputs write NAME=DATA. @FILE reads a list of file names, - reads the list from stdin (one name per line,
    or separated by NUL). A text model computes an embedding, a class or a generated text for each text of a column.

    \b
      irrun batch model.xml photos/ -o top.jsonl --labels names.txt --resize 256 --crop 224x224
      irrun batch model.xml ids='ids/*.npy' mask='masks/*.npy' -o results/ --workers 4
      irrun batch model.xml rows.parquet -o scores.parquet --engine ray --workers 8
      irrun batch folder/ texts.parquet --column text -o embeddings.parquet

    Batching changes results only by rounding. The manifest in OUTPUT/.batch (or OUTPUT.batch) records input, output,
    digest and status of every item; the same command with --resume continues after a crash, a full disk or Ctrl-C.
    """
    gc.enable()
    from irload.batch.items import WorkerOptions
    from irload.batch.job import Job
    from irload.batch.run_job import run_job
    from irload.text.tasks import TextOptions
    from irrun.batch_progress import BatchProgress, report, show_summary

    target = outputs.target()
    if course.address is not None and course.engine != "ray":
        raise click.UsageError("--address requires --engine ray")
    if course.fail_fast and course.keep_going:
        raise click.UsageError("--fail-fast cannot be combined with --keep-going")
    how = WorkerOptions(
        str(source.model),
        None if source.weights is None else str(source.weights),
        _shapes(source),
        samples.batch_size,
        threads,
        images.options(),
        target,
        sha256=source.pins,
        cast=samples.cast,
        hashed=course.verify_inputs,
        compile=options,
        texts=TextOptions(given_settings(settings), samples.chat),
    )
    job = Job(
        data,
        how,
        target,
        course.workers,
        course.engine,
        course.address,
        course.resume,
        course.force,
        course.fail_fast,
        course.keep_going,
        samples.mapping(),
    )
    with BatchProgress() as progress:
        summary = run_job(job, progress)
    progress.notice(summary.differences)
    if as_json:
        from irrun.render import show_json

        show_json(report(job, summary))
    else:
        show_summary(job, summary)
    if summary.interrupted:
        raise KeyboardInterrupt
    from irrun.failures import FINDINGS, OK, OUT_OF_MEMORY

    return OUT_OF_MEMORY if summary.out_of_memory else FINDINGS if summary.failed else OK


def _shapes(source: Source) -> dict[str | int, ShapeLike] | None:
    """Return the new shapes by input position, a form that workers can unpickle."""
    if not source.shapes:
        return None
    if source.model.is_dir():
        raise click.UsageError("--shape requires a model file; the model of a folder accepts texts of any length")
    return {k: shape for k, shape in shapes_of(source.read(), source.shapes).items() if isinstance(k, int)}
