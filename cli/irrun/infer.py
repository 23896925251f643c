"""`irrun infer`: what every layer gives, beside what the file declares."""

from __future__ import annotations

from pathlib import Path

import click

from irrun.arguments import json_option, model_argument, shapes_of, shapes_option, weights_option


@click.command("infer", no_args_is_help=True)
@model_argument
@weights_option
@shapes_option
@click.option("--differences", is_flag=True, help="Show only the layers that differ or fail.")
@json_option
def command(model: Path, weights: Path | None, shapes: tuple[str, ...], differences: bool, as_json: bool) -> int:
    """Infer every layer's output types and shapes and compare them with what MODEL (.xml) declares.

    A difference is marked ≠, a layer that does not hold together ✗; either makes the exit code 1. With --shape the
    model is inferred for other inputs than the file was written for, so its declarations will usually differ.
    """
    from irrun.comparison import render, report
    from irrun.render import progress, show_json
    from irrun.survey import infer_all, reshape_inputs, survey

    with progress("inferring"):
        found = survey(model, weights)
        reshape_inputs(found, shapes_of(found.model, shapes))
        infer_all(found)
        document = report(model, found)
    if as_json:
        show_json(document)
    else:
        render(document, differences_only=differences)
    return 0 if document["agrees"] else 1
