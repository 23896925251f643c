"""The options of `irrun batch`, grouped in records."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import click

from irload.record import record

if TYPE_CHECKING:
    from irload.batch.images import ImageOptions
    from irload.batch.target import OutputTarget

FILES = ("parquet", "jsonl", "csv")
"""Suffixes of outputs that are a single file."""


@record()
class Outputs:
    """Where results are written, and in which form."""

    output: str
    kind: str | None
    top: int | None
    labels: Path | None

    def target(self) -> OutputTarget:
        """Return the target.

        Raises UsageError for options that have no effect on it, InputInvalid and OSError for the labels.
        """
        from irload.batch.labels import read_labels
        from irload.batch.target import OutputTarget

        kind = output_kind(self.output, self.kind)
        if self.top is not None and kind != "jsonl":
            raise click.UsageError("--top requires a .jsonl; other formats contain all values")
        if self.labels is not None and kind not in ("jsonl", "csv"):
            raise click.UsageError("--labels requires a .jsonl or .csv; other formats contain no names")
        labels = () if self.labels is None else read_labels(self.labels)
        return OutputTarget(Path(self.output), kind, self.top or 5, labels)


@record()
class Images:
    """The preprocessing of images."""

    resize: tuple[int, ...] | None
    crop: tuple[int, int] | None
    layout: str | None
    mean: tuple[float, ...] | None
    scale: tuple[float, ...] | None
    channels: Literal["rgb", "bgr"] | None

    def options(self) -> ImageOptions:
        """Return the options as the library's ImageOptions."""
        from irload.batch.images import ImageOptions

        layout = None if self.layout is None else "NCHW" if self.layout.upper() == "NCHW" else "NHWC"
        return ImageOptions(self.resize, self.crop, layout, self.mean or (), self.scale or (), self.channels)


@record()
class SampleOptions:
    """How samples are assigned to inputs and batched. `chat`: texts are messages for the folder's chat template."""

    batch_size: int | None
    columns: tuple[str, ...]
    cast: bool
    chat: bool

    def mapping(self) -> dict[str, str]:
        """Return the table column of each input. Raises UsageError for an invalid --column."""
        return _mapping(self.columns)


@record()
class Course:
    """Where the job runs, how it starts, and when it stops. `verify_inputs`: detect changed inputs by content."""

    workers: int
    engine: str
    address: str | None
    resume: bool
    force: bool
    fail_fast: bool
    keep_going: bool
    verify_inputs: bool


def numbers(count: tuple[int, ...], kind: Callable[[str], Any], form: str) -> Callable[..., Any]:
    """Return a callback that parses `1,2,3` or `224x224` into numbers; `count` lists the accepted counts."""

    def read(ctx: click.Context, param: click.Parameter, text: str | None) -> tuple[Any, ...] | None:
        if text is None:
            return None
        try:
            values = tuple(kind(part) for part in text.replace("x", ",").split(","))
        except ValueError:
            values = ()
        if len(values) not in count or any(v <= 0 for v in values if kind is int):
            raise click.BadParameter(f"'{text}' is not of the form {form}", ctx, param)
        return values

    return read


def output_kind(output: str, kind: str | None) -> str:
    """Return the kind of output, by suffix: one file, or a folder of files (trailing separator, or no suffix)."""
    path = Path(output)
    suffix = "" if output.endswith(("/", os.sep)) else path.suffix.lower()
    if suffix[1:] in FILES and not path.is_dir():
        if kind is not None:
            raise click.UsageError(f"--format {kind} requires a folder, but {path} is a single file")
        return suffix[1:]
    if suffix in (".npy", ".npz"):
        raise click.UsageError(f"{path} would be a folder with one file per item; name it without {suffix}")
    if path.exists() and not path.is_dir():
        raise click.UsageError(f"{path} is a file; give a folder, a .parquet, a .jsonl or a .csv")
    if suffix and kind is None and not path.is_dir():
        raise click.UsageError(
            f"{suffix} is not a supported output format; use .parquet, .jsonl or .csv, or a folder: {path}/"
        )
    return kind or "npz"


def _mapping(texts: Sequence[str]) -> dict[str, str]:
    columns: dict[str, str] = {}
    for text in texts:
        name, sign, column = text.partition("=")
        if not sign:
            name, column = "", text
        if not column or (sign and not name):
            raise click.UsageError(f"--column '{text}' is not of the form NAME=COLUMN")
        if name in columns:
            raise click.UsageError(f"--column names input '{name}' twice" if name else "--column is given twice")
        columns[name] = column
    return columns
