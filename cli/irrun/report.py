"""`irrun report`: a model as one HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from irload import Limits
from irrun.arguments import compile_options, model_argument, shapes_of, shapes_option, weights_option


@click.command("report", no_args_is_help=True)
@model_argument
@click.argument("inputs", nargs=-1, metavar="[[NAME=]FILE]...", type=click.Path())
@click.option("-o", "--output", type=click.Path(path_type=Path), metavar="FILE.html", help="Where to (MODEL.html).")
@click.option("--force", is_flag=True, help="Replace an existing file.")
@weights_option
@shapes_option
@click.option("--profile", is_flag=True, help="Measure every layer on the inputs.")
@click.option("--compare", "other", metavar="B", help="Compare the layers with B, as irrun compare takes it.")
@click.option(
    "--diff", "against", type=click.Path(path_type=Path), metavar="B", help="Show what was edited in model B."
)
@click.option("--random", "seed", type=click.IntRange(0), default=0, metavar="SEED", help="Seed of the other inputs.")
@click.option("--no-constants", is_flag=True, help="Read no weights: constants without statistics.")
@compile_options
def command(
    model: Path,
    inputs: tuple[str, ...],
    output: Path | None,
    force: bool,
    weights: Path | None,
    shapes: tuple[str, ...],
    profile: bool,
    other: str | None,
    against: Path | None,
    seed: int,
    no_constants: bool,
    limits: Limits,
    **options: Any,
) -> int:
    r"""Write an HTML page that shows MODEL (.xml): its graph, layers, costs, memory, findings.

    The page is one file that loads nothing. Inputs are for --profile and --compare; what no file gives is random.

    \b
      irrun report model.xml -o report.html
      irrun report model.xml image.npy --profile --compare openvino
    """
    from irload import read_model, report
    from irload.loading import read_anyway
    from irrun.feed import gather
    from irrun.render import progress, safe, size_text, stdout
    from irrun.suggest import advice

    target = output if output is not None else Path(model.with_suffix(".html").name)
    if target.exists() and not force:
        raise FileExistsError(f"{target} exists already")
    with progress("reading the model"):
        runs = bool(inputs) or profile or other is not None
        loaded = (read_model if runs else read_anyway)(model, weights, limits=limits)
        if shapes:
            loaded.reshape(shapes_of(loaded, shapes))
    values = None
    if runs:
        values = [f.value for f in gather(loaded.inputs, inputs, seed, limits, lambda p: advice(loaded, p))]
    with progress("making the report"):
        made = report(
            loaded,
            values,
            constants=not no_constants,
            profile=profile,
            comparison=other,
            difference=against,
            limits=limits,
            **options,
        )
        made.save(target, force=force)
    stdout().print(f"{safe(target)}: {len(made.data['layers'])} layers, {size_text(len(made.html))}", soft_wrap=True)
    return 0
