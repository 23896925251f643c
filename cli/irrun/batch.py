"""`irrun batch`: a model over many inputs, restartable, with its progress shown."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import click

from irload import Limits
from irload.inference import ShapeLike
from irrun.arguments import (
    json_option,
    kernel_options,
    model_argument,
    pin_option,
    shapes_of,
    shapes_option,
    strict_option,
    weights_option,
)


def _numbers(count: tuple[int, ...], kind: Callable[[str], Any], what: str) -> Callable[..., Any]:
    """A callback that reads `1,2,3` or `224x224` as numbers, as many as `count` allows."""

    def read(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[Any, ...] | None:
        if text is None:
            return None
        try:
            values = tuple(kind(part) for part in text.replace("x", ",").split(","))
        except ValueError:
            values = ()
        if len(values) not in count or any(v <= 0 for v in values if kind is int):
            raise click.BadParameter(f"'{text}' is not of the form {what}", ctx, param)
        return values

    return read


FILES = ("parquet", "jsonl", "csv")
"""Outputs that are one file."""


@click.command("batch", no_args_is_help=True)
@model_argument
@click.argument("data", nargs=-1, required=True, metavar="[NAME=]DATA...")
@click.option("-o", "--output", type=click.Path(), required=True, help="A folder, or a .parquet, .jsonl or .csv.")
@click.option("--format", "kind", type=click.Choice(["npz", "npy"]), help="Files in the folder: npz (default) or npy.")
@click.option("--batch-size", type=click.IntRange(1), help="Samples an inference; default: as many as is fastest.")
@click.option("--workers", type=click.IntRange(1), default=1, show_default=True, help="Processes, or actors of Ray.")
@click.option("--threads", type=click.IntRange(1), metavar="N", help="Threads of all workers together.")
@click.option("--resume", is_flag=True, help="Go on with an interrupted job; failed items are tried again.")
@click.option("--force", is_flag=True, help="Replace existing outputs, start the job anew.")
@click.option("--fail-fast", is_flag=True, help="Stop at the first bad item.")
@click.option("--keep-going", is_flag=True, help="Do not stop where the first items all fail for one reason.")
@click.option("--verify-inputs", is_flag=True, help="Know changed inputs by their SHA-256, not by size and time.")
@click.option("--column", "columns", multiple=True, metavar="NAME=COLUMN", help="The column that feeds an input.")
@click.option("--cast", is_flag=True, help="Convert values also where that loses something.")
@click.option("--top", type=click.IntRange(1), help="Greatest values in a .jsonl; default: 5.")
@click.option("--labels", type=click.Path(path_type=Path), metavar="FILE", help="Names of values, one a line.")
@click.option(
    "--resize",
    metavar="WxH",
    callback=_numbers((1, 2), int, "224x224 or 256"),
    help="Images: WxH, or the shorter side.",
)
@click.option("--crop", metavar="WxH", callback=_numbers((2,), int, "224x224"), help="Images: the middle.")
@click.option(
    "--layout",
    type=click.Choice(["NCHW", "NHWC"], case_sensitive=False),
    help="Images: order of axes; default: as the channels tell.",
)
@click.option(
    "--mean", metavar="M,M,M", callback=_numbers((1, 3), float, "123.7,116.3,103.5"), help="Images: subtracted."
)
@click.option(
    "--scale",
    metavar="S,S,S",
    callback=_numbers((1, 3), float, "58.4,57.1,57.4"),
    help="Images: divided by, after --mean.",
)
@click.option("--channels", type=click.Choice(["rgb", "bgr"]), help="Images: order of colours; default: rgb.")
@kernel_options
@strict_option
@weights_option
@pin_option
@shapes_option
@click.option("--engine", type=click.Choice(["local", "ray"]), default="local", show_default=True, help="Where to run.")
@click.option("--address", metavar="ADDRESS", help="Ray: a running cluster; default: one of this machine.")
@json_option
def command(
    model: Path,
    data: tuple[str, ...],
    output: str,
    kind: str | None,
    batch_size: int | None,
    workers: int,
    threads: int | None,
    resume: bool,
    force: bool,
    fail_fast: bool,
    keep_going: bool,
    verify_inputs: bool,
    columns: tuple[str, ...],
    cast: bool,
    top: int | None,
    labels: Path | None,
    resize: tuple[int, ...] | None,
    crop: tuple[int, int] | None,
    layout: str | None,
    mean: tuple[float, ...] | None,
    scale: tuple[float, ...] | None,
    channels: Literal["rgb", "bgr"] | None,
    jit: bool | None,
    precision: str,
    strict: bool,
    weights: Path | None,
    shapes: tuple[str, ...],
    engine: str,
    address: str | None,
    limits: Limits,
    pins: dict[str, str] | None,
    as_json: bool,
) -> int:
    r"""Run MODEL (.xml) over many inputs.

    DATA are folders, files or quoted patterns of .npy (one sample or a stack), .npz (arrays named as the inputs),
    images, or .parquet (columns named as the inputs; others are carried over); NAME=DATA for one input of several;
    @FILE for a list of names, - for one from stdin (a name a line, or NUL between them).

    \b
      irrun batch model.xml photos/ -o top.jsonl --labels names.txt --resize 256 --crop 224x224
      irrun batch model.xml ids='ids/*.npy' mask='masks/*.npy' -o results/ --workers 4
      irrun batch model.xml rows.parquet -o scores.parquet --engine ray --workers 8

    Results are those of each sample alone. The manifest in OUTPUT/.batch (or OUTPUT.batch) has input, output, digest
    and status of every item; the same command with --resume goes on after a crash, a full disk or Ctrl-C.
    """
    gc.enable()
    from irload.batch.images import ImageOptions
    from irload.batch.items import WorkerOptions
    from irload.batch.job import Job
    from irload.batch.run_job import run_job
    from irload.batch.target import Target
    from irrun.batch_progress import BatchProgress, report, show_summary

    path, kind = Path(output), output_kind(output, kind)
    _require_used(kind, engine, top=top, labels=labels, address=address)
    target = Target(path, kind, top or 5, _labels(labels))
    images = ImageOptions(resize, crop, _layout(layout), mean or (), scale or (), channels)
    options = WorkerOptions(
        str(model),
        None if weights is None else str(weights),
        _shapes(model, weights, shapes, limits, pins),
        batch_size,
        threads,
        images,
        target,
        limits=limits,
        sha256=pins,
        strict=strict,
        cast=cast,
        hashed=verify_inputs,
        jit=jit,
        precision=precision,
    )
    job = Job(
        data,
        options,
        target,
        workers,
        engine,
        address,
        resume,
        force,
        fail_fast,
        keep_going,
        _mapping(columns),
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
    return 1 if summary.failed else 0


def output_kind(output: str, kind: str | None) -> str:
    """What an output is, by its suffix: one file, or (with a separator at its end, or no suffix) a folder of files."""
    path = Path(output)
    suffix = "" if output.endswith(("/", os.sep)) else path.suffix.lower()
    if suffix[1:] in FILES and not path.is_dir():
        if kind is not None:
            raise click.UsageError(f"--format {kind} is for a folder of files, and {path} is one file")
        return suffix[1:]
    if suffix in (".npy", ".npz"):
        raise click.UsageError(f"{path} would be a folder with a file an item; name it without {suffix}")
    if path.exists() and not path.is_dir():
        raise click.UsageError(f"{path} is a file; give a folder, a .parquet, a .jsonl or a .csv")
    if suffix and kind is None and not path.is_dir():
        raise click.UsageError(
            f"{suffix} is no form of results; there are .parquet, .jsonl and .csv, and folders: {path}/"
        )
    return kind or "npz"


def _require_used(kind: str, engine: str, *, top: int | None, labels: Path | None, address: str | None) -> None:
    """Refuse options that would make no difference."""
    if top is not None and kind != "jsonl":
        raise click.UsageError("--top is for a .jsonl; other results have all values")
    if labels is not None and kind not in ("jsonl", "csv"):
        raise click.UsageError("--labels name the values of a .jsonl or .csv; other results have no names")
    if address is not None and engine != "ray":
        raise click.UsageError("--address is that of a Ray cluster: give --engine ray")


def _mapping(texts: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for text in texts:
        name, sign, column = text.partition("=")
        if not (name and sign and column):
            raise click.UsageError(f"--column '{text}' is not of the form NAME=COLUMN")
        if name in found:
            raise click.UsageError(f"--column names input '{name}' twice")
        found[name] = column
    return found


def _labels(path: Path | None) -> tuple[str, ...]:
    return () if path is None else tuple(path.read_text(encoding="utf-8", errors="replace").splitlines())


def _layout(text: str | None) -> Literal["NCHW", "NHWC"] | None:
    return None if text is None else "NCHW" if text.upper() == "NCHW" else "NHWC"


def _shapes(
    model: Path, weights: Path | None, texts: tuple[str, ...], limits: Limits, pins: dict[str, str] | None
) -> dict[str | int, ShapeLike] | None:
    """The shapes by position, as workers can have them."""
    if not texts:
        return None
    from irload import read_model

    read = read_model(model, weights, limits=limits, sha256=pins)
    return {k: shape for k, shape in shapes_of(read, texts).items() if isinstance(k, int)}
