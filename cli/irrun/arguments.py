"""What the commands' arguments have in common: the model, its weights, new shapes for its inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import click

from irload import Model, Port, ShapeMismatch
from irload.inference import ShapeLike, as_shape

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

model_argument: Decorator = click.argument("model", type=click.Path(path_type=Path))
weights_option: Decorator = click.option(
    "--weights", type=click.Path(path_type=Path), help="The .bin file, where it is not the one beside the model."
)
shapes_option: Decorator = click.option(
    "--shape",
    "shapes",
    multiple=True,
    metavar="NAME[DIMS]",
    help="A new shape for an input, as x[1,3,?,1..8]; the name may be left out where there is one input.",
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
