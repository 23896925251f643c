"""`irrun inspect`: what a model holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from irload import Limits
from irrun.arguments import json_option, model_argument, shapes_of, shapes_option, weights_option
from irrun.completion import layer_names


@click.command("inspect", no_args_is_help=True)
@model_argument
@weights_option
@shapes_option
@click.option("--layers", is_flag=True, help="One row a layer, with types and shapes.")
@click.option(
    "--layer",
    "wanted",
    metavar="NAME",
    shell_complete=layer_names,
    help="Everything about the layer of this name or id.",
)
@click.option("--constants", "constants", is_flag=True, help="One row a constant, with statistics of its values.")
@click.option("--macs", is_flag=True, help="Multiply-accumulates, by layer and in total.")
@click.option("--memory", is_flag=True, help="Bytes of constants, and of activations at their peak.")
@click.option("--tree", is_flag=True, help="The bodies of control flow and how they are wired.")
@click.option("--type", "types", multiple=True, metavar="GLOB", help="Only layers of this type; may be repeated.")
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="GLOB",
    shell_complete=layer_names,
    help="Only layers of such a name; may be repeated.",
)
@click.option("--sha256", "hashed", is_flag=True, help="Digests of the files, and one of both for --sha256 of run.")
@json_option
def command(
    model: Path,
    weights: Path | None,
    shapes: tuple[str, ...],
    limits: Limits,
    hashed: bool,
    as_json: bool,
    **asked: Any,
) -> int:
    """Show what MODEL (.xml) holds: inputs, outputs, operations, weights, metadata.

    Any of --layers, --layer, --constants, --macs, --memory, --tree and --sha256 shows that instead; --type and --name
    choose among their layers. It works without the .bin file, with unknown operations and with layers that do not fit
    together.
    """
    from irload.differences import note_differences
    from irrun.parts import show, with_parts
    from irrun.render import progress, show_json
    from irrun.survey import infer_all, reshape_inputs, survey

    with progress("reading the model"):
        found = survey(model, weights, limits, hashed=hashed)
        reshape_inputs(found, shapes_of(found.model, shapes))
        infer_all(found)
        if not shapes:  # the ports do not follow them
            note_differences(found.model)
        document = with_parts(model, found, **asked)
    if as_json:
        show_json(document)
    else:
        show(document)
    return 0
