"""`irrun infer`: what every layer gives, beside what the file declares."""

from __future__ import annotations

from pathlib import Path

import click

from irload import Limits
from irrun.arguments import json_option, model_argument, pin_option, shapes_of, shapes_option, weights_option


@click.command("infer", no_args_is_help=True)
@model_argument
@weights_option
@pin_option
@shapes_option
@click.option("--differences", is_flag=True, help="Show only the layers that differ or fail.")
@click.option(
    "--write",
    "target",
    type=click.Path(path_type=Path),
    metavar="FIXED.xml",
    help="Write the file with its ports as inferred and all else byte for byte.",
)
@click.option("--force", is_flag=True, help="Let --write replace an existing file, be it MODEL itself.")
@json_option
def command(
    model: Path,
    weights: Path | None,
    shapes: tuple[str, ...],
    differences: bool,
    target: Path | None,
    force: bool,
    limits: Limits,
    pins: dict[str, str] | None,
    as_json: bool,
) -> int:
    """Infer every layer's output types and shapes and compare them with what MODEL (.xml) declares.

    A difference is marked ≠, a layer that does not hold together ✗; either makes the exit code 1. With --shape the
    model is inferred for other inputs than the file was written for, so its declarations will usually differ.

    With --write the exit code is 1 only when a layer does not hold together: its ports stay as they are.
    """
    from irload import correct_ports
    from irrun.comparison import render, report
    from irrun.render import progress, safe, show_json, stderr
    from irrun.survey import infer_all, reshape_inputs, survey

    if target is not None and shapes:
        raise click.UsageError("--write corrects the file for its own inputs; leave --shape out")
    with progress("inferring"):
        found = survey(model, weights, limits, pins)
        reshape_inputs(found, shapes_of(found.model, shapes))
        infer_all(found)
        document = report(model, found)
        corrected = None if target is None else correct_ports(found.model, target, force=force)
    if as_json:
        show_json(document)
    else:
        render(document, differences_only=differences)
    if corrected is None:
        return 0 if document["agrees"] else 1
    ports = "1 port" if corrected == 1 else f"{corrected} ports"
    stderr().print(f"wrote {safe(target)}, {ports} corrected", soft_wrap=True)
    return 1 if found.failed or found.faults else 0
