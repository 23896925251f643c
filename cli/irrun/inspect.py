"""`irrun inspect`: shows the contents of a model."""

from __future__ import annotations

from typing import Any

import click

from irrun.arguments import json_option, model_argument, shapes_of, shapes_option, weights_option
from irrun.completion import layer_names
from irrun.records import Source, records


@click.command("inspect", no_args_is_help=True)
@model_argument
@weights_option
@shapes_option
@click.option("--layers", is_flag=True, help="One row per layer, with types and shapes.")
@click.option(
    "--layer",
    "wanted",
    metavar="NAME",
    shell_complete=layer_names,
    help="All details of the layer with this name or id.",
)
@click.option("--constants", "constants", is_flag=True, help="One row per constant, with statistics of its values.")
@click.option("--macs", is_flag=True, help="Multiply-accumulates, by layer and in total.")
@click.option("--memory", is_flag=True, help="Bytes of constants, and of activations at their peak.")
@click.option("--metadata", is_flag=True, help="All rt_info of the model, including every conversion option.")
@click.option("--tree", is_flag=True, help="The bodies of control flow and their connections.")
@click.option("--type", "types", multiple=True, metavar="GLOB", help="Only layers of this type; may be repeated.")
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="GLOB",
    shell_complete=layer_names,
    help="Only layers whose name matches this pattern; may be repeated.",
)
@click.option(
    "--sha256", "hashed", is_flag=True, help="SHA-256 of each file, and the digest of the model for run --sha256."
)
@json_option
@records(source=Source)
def command(source: Source, hashed: bool, metadata: bool, as_json: bool, **parts: Any) -> int:
    """Show the contents of MODEL (.xml): inputs, outputs, operations, weights, metadata.

    MODEL may be the folder of a language model: inspect then shows its models, vocabulary, special tokens, state and
    settings. --layers, --layer, --constants, --macs, --memory, --metadata, --tree and --sha256 each show one part;
    --type and --name filter its layers. The .bin file is optional, and unknown operations or inconsistent layers do
    not stop the command.
    """
    if source.model.is_dir():
        _require_file(source, hashed or metadata or any(parts.values()))
        _show_folder(source, as_json=as_json)
        return 0
    from irload.validation.differences import note_differences
    from irrun.parts import show, with_parts
    from irrun.render import progress, show_json
    from irrun.survey import Filter, infer_all, reshape_inputs, survey

    with progress("reading the model"):
        surveyed = survey(source.model, source.weights, source.limits, hashed=hashed)
        reshape_inputs(surveyed, shapes_of(surveyed.model, source.shapes))
        infer_all(surveyed)
        if not source.shapes:  # with --shape the inferred ports differ from the declared ones anyway
            note_differences(surveyed.model)
        document = with_parts(source.model, surveyed, **parts)
    if as_json:
        show_json(document)
    else:
        show(document, Filter(parts["types"], parts["names"]), metadata=metadata)
    return 0


def _require_file(source: Source, is_part: object) -> None:
    """Raise UsageError for options that are for model files."""
    if source.weights is not None or source.shapes or is_part:
        raise click.UsageError(
            f"{source.model} is a folder, for which only --json is supported; other options require a model file"
        )


def _show_folder(source: Source, *, as_json: bool) -> None:
    from irrun.folder import folder_report, show_folder
    from irrun.render import progress, show_json

    with progress("reading the folder"):
        document = folder_report(source.model, source.limits)
    if as_json:
        show_json(document)
    else:
        show_folder(document)
