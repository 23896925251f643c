"""`irrun run`: a model, its inputs, its outputs."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import click

from irload import Limits
from irrun.arguments import (
    compile_options,
    json_option,
    model_argument,
    pin_option,
    shapes_of,
    shapes_option,
    strict_option,
    weights_option,
)


@click.command("run", no_args_is_help=True)
@model_argument
@click.argument("inputs", nargs=-1, metavar="[[NAME=]FILE]...", type=click.Path())
@weights_option
@pin_option
@click.option("--random", "seed", type=click.IntRange(0), metavar="SEED", help="Fill inputs that no file gives.")
@shapes_option
@click.option("--top", type=click.IntRange(1), metavar="N", help="Show the N greatest values along the last axis.")
@click.option("--labels", type=click.Path(path_type=Path), metavar="FILE", help="Names for --top, one a line.")
@click.option("-o", "--output", type=click.Path(path_type=Path), help="Write outputs: FILE.npz, FILE.npy or a folder.")
@click.option("--force", is_flag=True, help="Let -o and --dump replace existing files.")
@compile_options
@strict_option
@click.option("--emulate", type=click.Choice(["openvino-cpu"]), help="Compute as that runtime does, not as specified.")
@click.option("--profile", is_flag=True, help="Show the time of every step as well.")
@click.option("--explain", is_flag=True, help="Show the plan in words as well: what was fused, which kernels, why.")
@click.option("--dump", type=click.Path(path_type=Path), metavar="DIR", help="Write every layer's outputs there.")
@click.option("--layers", multiple=True, metavar="PATTERN", help="Only these layers for --dump; may be repeated.")
@click.option("--check-finite", "finite", is_flag=True, help="Name the first layers that give NaN or infinity.")
@click.option("--no-cache", is_flag=True, help="Keep no plan for the next run of the file, and take none.")
@click.option("--subnormals", is_flag=True, help="Look for subnormal numbers as well, with --check-finite.")
@json_option
def command(
    model: Path,
    inputs: tuple[str, ...],
    weights: Path | None,
    seed: int | None,
    shapes: tuple[str, ...],
    top: int | None,
    labels: Path | None,
    output: Path | None,
    force: bool,
    strict: bool,
    emulate: str | None,
    profile: bool,
    explain: bool,
    dump: Path | None,
    layers: tuple[str, ...],
    finite: bool,
    subnormals: bool,
    no_cache: bool,
    limits: Limits,
    pins: dict[str, str] | None,
    as_json: bool,
    **options: Any,
) -> int:
    r"""Run MODEL (.xml) on inputs and show its outputs.

    Inputs are .npy or .npz files, in the order of the model's inputs or as NAME=FILE.

    \b
      irrun model.xml image.npy --top 5 --labels names.txt
      irrun model.xml ids=ids.npy mask=mask.npy -o result.npz
      irrun model.xml --random 0 --shape 'image[1,3,224,224]'
    """
    from irload.compiling import compile_model, place_for
    from irrun.feed import gather
    from irrun.intermediates import dumped, nonfinite, render_intermediates, require_options
    from irrun.notice import Notice
    from irrun.outcome import render, report
    from irrun.output_files import plan_files, write_files
    from irrun.plan import render_plan, timed
    from irrun.render import progress, show_json
    from irrun.suggest import advice

    require_options(dump, layers, finite=finite, subnormals=subnormals)
    names = _labels(labels)
    emulated: list[str] = []
    as_it_is = not (no_cache or weights or pins or shapes or emulate or profile or explain or dump or finite)
    place = place_for(model, limits=limits, **options) if as_it_is else None
    planning = time.perf_counter()
    compiled = cached = None if place is None else place.find(strict=strict)
    if compiled is None:
        from irload import read_model  # which a plan that was kept does without

        with progress("reading the model"):
            loaded = read_model(model, weights, limits=limits, sha256=pins)
            if shapes:
                loaded.reshape(shapes_of(loaded, shapes))
            emulated = _emulated(loaded, emulate)
        planning = time.perf_counter()
        with progress("planning"):
            compiled = compile_model(loaded, optimize=emulate is None, strict=strict, **options)
    planned = time.perf_counter() - planning
    notice = Notice()
    notice(compiled.differences)
    fed = gather(compiled.inputs, inputs, seed, limits, lambda ports: advice(compiled.model, ports))
    files = plan_files(output, compiled.outputs, force=force) if output is not None else None
    values = [f.value for f in fed]
    seen: dict[str, Any] = {}
    if dump is not None:
        with progress("writing the outputs of the layers"):
            seen["dump"] = dumped(compiled, values, dump, layers, force=force)
    if finite:
        with progress("looking for NaN and infinities"):
            seen["finite"] = nonfinite(compiled, values, subnormals=subnormals)
    planning = time.perf_counter()
    with progress("planning"):
        compiled.prepare(values)  # at once where the model is static, which is planned already
    started = time.perf_counter()
    planned += started - planning
    with progress("running"):
        result = compiled(values)
    seconds = time.perf_counter() - started
    notice(compiled.differences)
    if files is not None:
        write_files(files, result, force=force)
    document: dict[str, Any] = report(
        model, compiled, fed, result, (planned, seconds), top, names, cached=cached is not None
    )
    document["warnings"] = compiled.warnings
    document |= seen
    if emulate is not None:
        document["emulated"] = emulated
    document["written"] = [] if files is None else [str(f) for f in files]
    if explain:
        document["plan"] = compiled.explain(values)
    if profile:
        document["profile"] = timed(compiled.profile(values))
    if as_json:
        show_json(document)
    else:
        render(document)
        render_plan(document)
        render_intermediates(document)
    if place is not None and cached is None:
        place.keep(compiled)
    return 0 if not finite or document["finite"]["passed"] else 1


def _emulated(model: Any, target: str | None) -> list[str]:
    """Have the model computed as a runtime does it; the layers that change, which are said on stderr."""
    if target is None:
        return []
    from irload.emulation import emulate
    from irrun.render import safe, stderr

    layers = [node.where().layer for node in emulate(model, target)]
    what = f"{len(layers)} layer{'' if len(layers) == 1 else 's'}"
    stderr().print(f"irrun: {what} computed as {target} does it, not as specified", soft_wrap=True)
    for layer in layers[:20]:
        stderr().print(f"irrun:   {safe(layer)}", soft_wrap=True)
    return layers


def _labels(path: Path | None) -> list[str]:
    return [] if path is None else path.read_text(encoding="utf-8", errors="replace").splitlines()
