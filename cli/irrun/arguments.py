"""Arguments and options that several commands share: the model, its weights, new shapes for its inputs."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:  # the commands import this module for their --help, and NumPy would add 100 ms
    from irload import Limits, Model, Port
    from irload.inference import ShapeLike

THREADS = "default: IRLOAD_NUM_THREADS, else all available processors."
"""The end of the help of every --threads."""
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
    help="A Python file that defines further operations; may be repeated.",
)
"""Load extensions while the command line is parsed, before any model is read."""


def _limits(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> Limits:
    from irload.safety.limits import limits_of

    return _parsed(ctx, param, limits_of, texts)


def _parsed(ctx: click.Context, param: click.Parameter, parse: Callable[[Sequence[str]], T], texts: Sequence[str]) -> T:
    """Return `parse(texts)`; its InputInvalid becomes a usage error of the option."""
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
    help="Change a safety limit, for example tensor-bytes=8G or wall-time=60; may be repeated.",
)


def _pins(ctx: click.Context, param: click.Parameter, texts: Sequence[str]) -> dict[str, str] | None:
    if not texts:
        return None
    from irload.safety.integrity import pins_of

    return _parsed(ctx, param, pins_of, texts)


pin_option: Decorator = click.option(
    "--sha256",
    "pins",
    multiple=True,
    metavar="DIGEST",
    callback=_pins,
    help="Expected digest of the model, as printed by inspect --sha256; xml=DIGEST or bin=DIGEST for one file.",
)


class FileToWrite(click.Path):
    """A file or folder to write. Refuses `-`, by which other programs mean stdout."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if value == "-":
            self.fail(
                "irrun does not write files to stdout; name a file, or write ./- for one with this name", param, ctx
            )
        return super().convert(value, param, ctx)


def model_argument(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument MODEL, and the options for extensions and safety limits."""
    return click.argument("model", type=click.Path(path_type=Path))(extension_option(limit_option(command)))


@contextmanager
def weights_of_two_models() -> Generator[None, None, None]:
    """Rewrite a remedy that names --bin for commands that read two models."""
    from irload import ReadError

    try:
        yield
    except ReadError as error:
        message = error.message.replace("--bin FILE", "--weights-a FILE or --weights-b FILE")
        raise ReadError(message, error.where) from None


weights_option: Decorator = click.option(
    "--bin",
    "--weights",
    "weights",
    type=click.Path(path_type=Path),
    help="The .bin file; default: MODEL with the suffix .bin.",
)
shapes_option: Decorator = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME[DIMS]",
    help="A new shape for an input, for example x[1,3,?,1..8]; the name is optional if the model has one input.",
)


def kernel_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select kernels."""
    options: list[Decorator] = [
        click.option(
            "--jit/--no-jit",
            default=None,
            help="Require compiled kernels, or use NumPy only.",
        ),
        click.option(
            "--precision",
            type=click.Choice(["f32", "bf16", "auto"]),
            default="f32",
            help="Precision of convolutions and matrix products in compiled kernels; default: f32.",
        ),
    ]
    for option in reversed(options):
        command = option(command)
    return command


def compile_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of the plan, the same as for `irload.compile_model`."""
    options: list[Decorator] = [
        click.option("--threads", type=click.IntRange(1), metavar="N", help=f"Worker threads; {THREADS}"),
        click.option(
            "--precise", is_flag=True, help="Exclude kernels that round more than a plain sum, such as Winograd."
        ),
        click.option(
            "--tune",
            is_flag=True,
            help="Time alternative NumPy kernels and store the fastest in the user's cache; "
            "compiled kernels are not affected.",
        ),
    ]
    command = kernel_options(command)
    for option in reversed(options):
        command = option(command)
    return command


strict_option: Decorator = click.option(
    "--strict",
    is_flag=True,
    help="Refuse a model whose declared ports differ from the inferred ones, with exit code 1.",
)
json_option: Decorator = click.option("--json", "as_json", is_flag=True, help="Print a JSON document instead.")


def shapes_of(model: Model, texts: Sequence[str], option: str = "--shape") -> dict[str | int | Port, ShapeLike]:
    """Parse the values of `--shape` into a shape per input. Raises UsageError for an invalid text."""
    from irload import ShapeMismatch
    from irload.inference import as_shape

    shapes: dict[str | int | Port, ShapeLike] = {}
    for text in texts:
        name, bracket, dims = text.rpartition("[")
        if not bracket or not dims.endswith("]"):
            raise click.UsageError(f"{option} '{text}' is not of the form x[1,3,?,1..8]")
        if not name and len(model.inputs) != 1:
            names = ", ".join(p.any_name for p in model.inputs)
            raise click.UsageError(f"{option} '{text}' names none of the model's {len(model.inputs)} inputs: {names}")
        try:
            shape = as_shape(dims[:-1])
        except ShapeMismatch as error:
            raise click.UsageError(f"{option} '{text}': {error}") from None
        shapes[model.input(name or 0).index] = shape
    return shapes
