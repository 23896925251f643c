"""`irrun infer`: the inferred outputs of every layer next to the declared ones."""

from __future__ import annotations

from pathlib import Path

import click

from irrun.arguments import (
    FileToWrite,
    json_option,
    model_argument,
    pin_option,
    shapes_of,
    shapes_option,
    weights_option,
)
from irrun.records import Source, records


@click.command("infer", no_args_is_help=True)
@model_argument
@weights_option
@pin_option
@shapes_option
@click.option("--differences", is_flag=True, help="Show only the layers that differ or fail.")
@click.option(
    "--write",
    "target",
    type=FileToWrite(path_type=Path),
    metavar="FIXED.xml",
    help="Write a copy with inferred ports; all other bytes are unchanged.",
)
@click.option("--force", is_flag=True, help="Let --write replace an existing file, even MODEL.")
@json_option
@records(source=Source)
def command(source: Source, differences: bool, target: Path | None, force: bool, as_json: bool) -> int:
    """Infer every layer's output types and shapes and compare them with the declarations in MODEL (.xml).

    ≠ marks a difference, ✗ an invalid layer; both make the exit code 1. With --shape, types are inferred for other
    input shapes than the file declares, so its declarations usually differ.

    With --write the exit code is 1 only for invalid layers; their ports are not changed.
    """
    from irload import correct_ports
    from irrun.infer_report import render, report
    from irrun.render import progress, safe, show_json, stderr
    from irrun.survey import infer_all, reshape_inputs, survey

    if target is not None and source.shapes:
        raise click.UsageError(
            "--write cannot be combined with --shape: it infers from the inputs that the file declares"
        )
    with progress("inferring"):
        surveyed = survey(source.model, source.weights, source.limits, source.pins)
        reshape_inputs(surveyed, shapes_of(surveyed.model, source.shapes))
        infer_all(surveyed)
        document = report(source.model, surveyed)
        corrected = None if target is None else correct_ports(surveyed.model, target, force=force)
    if as_json:
        show_json(document)
    else:
        render(document, differences_only=differences)
    if corrected is None:
        return 0 if document["agrees"] else 1
    ports = "1 port" if corrected == 1 else f"{corrected} ports"
    stderr().print(f"wrote {safe(target)}, {ports} corrected", soft_wrap=True)
    return 1 if surveyed.failed or surveyed.faults else 0
