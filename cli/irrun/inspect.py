"""`irrun inspect`: what a model holds."""

from __future__ import annotations

from pathlib import Path

import click

from irrun.arguments import json_option, model_argument, weights_option


@click.command("inspect", no_args_is_help=True)
@model_argument
@weights_option
@click.option("--layers", is_flag=True, help="One row a layer, with types and shapes.")
@json_option
def command(model: Path, weights: Path | None, layers: bool, as_json: bool) -> int:
    """Show what MODEL (.xml) holds: inputs, outputs, operations, weights, metadata.

    It works without the .bin file, with unknown operations and with layers that do not fit together.
    """
    from irrun.contents import render, report
    from irrun.render import progress, show_json
    from irrun.survey import infer_all, survey

    with progress("reading the model"):
        found = survey(model, weights)
        infer_all(found)
        document = report(model, found, layers=layers)
    if as_json:
        show_json(document)
    else:
        render(document)
    return 0
