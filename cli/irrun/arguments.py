"""What the commands' arguments have in common: the model, its weights, new shapes for its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, TypeVar

import click

from irload import Limits, Model, Port, ShapeMismatch
from irload.inference import ShapeLike, as_shape

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]
T = TypeVar("T")


def _load(ctx: click.Context, _: click.Parameter, files: Sequence[Path]) -> None:
    if files and not ctx.resilient_parsing:
        from irload import load_extension

        for file in files:
            load_extension(file)


extension_option: Decorator = click.option(
    "--extension",
    multiple=True,
    metavar="FILE.py",
    type=click.Path(path_type=Path),
    is_eager=True,
    expose_value=False,
    callback=_load,
    help="A Python file with operations of your own; may be repeated.",
)
"""Extensions are loaded while the command line is read, before any model."""


def _limits(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> Limits:
    from irload.safety import limits_of

    return _parsed(ctx, param, limits_of, texts)


def _parsed(ctx: click.Context, param: click.Parameter, parse: Callable[[Sequence[str]], T], texts: Sequence[str]) -> T:
    """What `parse` makes of the texts; its InputInvalid is a usage error of the option."""
    from irload import InputInvalid

    try:
        return parse(texts)
    except InputInvalid as error:
        raise click.BadParameter(error.message, ctx, param) from None


limit_option: Decorator = click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_limits,
    help="Another safety limit, as tensor-bytes=8G or wall-time=60; may be repeated.",
)


def _pins(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[str, str] | None:
    if not texts:
        return None
    from irload.integrity import pins_of

    return _parsed(ctx, param, pins_of, texts)


pin_option: Decorator = click.option(
    "--sha256",
    "pins",
    multiple=True,
    metavar="DIGEST",
    callback=_pins,
    help="What the model must be, as inspect --sha256 shows it; xml=DIGEST or bin=DIGEST for one file.",
)


def model_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """The argument MODEL, and with it the options to extend what models may hold and to limit it."""
    return click.argument("model", type=click.Path(path_type=Path))(extension_option(limit_option(command)))


weights_option: Decorator = click.option(
    "--bin",
    "--weights",
    "weights",
    type=click.Path(path_type=Path),
    help="The .bin file, where it is not the one beside the model.",
)
shapes_option: Decorator = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME[DIMS]",
    help="A new shape for an input, as x[1,3,?,1..8]; the name may be left out where there is one input.",
)


def kernel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say which kernels run."""
    options: list[Decorator] = [
        click.option("--jit/--no-jit", default=None, help="Demand compiled kernels, or leave all to NumPy."),
        click.option(
            "--precision",
            type=click.Choice(["f32", "bf16", "auto"]),
            default="f32",
            help="What compiled kernels compute products in (f32).",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def compile_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """The options that say how a plan is made, those of `irload.compile_model`."""
    options: list[Decorator] = [
        click.option("--threads", type=click.IntRange(1), metavar="N", help="Worker threads."),
        click.option("--precise", is_flag=True, help="Avoid kernels that round more than a plain sum does."),
        click.option("--tune", is_flag=True, help="Time the kernels that would do, and remember the fastest."),
    ]
    command = kernel_options(command)
    for option in reversed(options):
        command = option(command)
    return command


strict_option: Decorator = click.option(
    "--strict", is_flag=True, help="Refuse a model whose ports declare what is not inferred: exit code 1."
)
json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print a JSON document instead.")


def shapes_of(model: Model, texts: Sequence[str]) -> dict[str | int | Port, ShapeLike]:
    """The shapes that `--shape` asks for, by input. Raises UsageError for what cannot be read."""
    found: dict[str | int | Port, ShapeLike] = {}
    for text in texts:
        name, bracket, dims = text.rpartition("[")
        if not bracket or not dims.endswith("]"):
            raise click.UsageError(f"--shape '{text}' is not of the form x[1,3,?,1..8]")
        if not name and len(model.inputs) != 1:
            names = ", ".join(p.any_name for p in model.inputs)
            raise click.UsageError(f"--shape '{text}' names none of the model's {len(model.inputs)} inputs: {names}")
        try:
            shape = as_shape(dims[:-1])
        except ShapeMismatch as error:
            raise click.UsageError(f"--shape '{text}': {error}") from None
        found[model.input(name or 0).index] = shape
    return found
