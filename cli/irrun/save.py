"""`irrun save`: a model written anew, as IR v11, for other shapes, with constants of f16, without rt_info."""

from __future__ import annotations

from pathlib import Path

import click

from irload import Limits, Model
from irrun.arguments import model_argument, pin_option, shapes_of, shapes_option, weights_option


@click.command("save", no_args_is_help=True)
@model_argument
@click.argument("target", metavar="TARGET.xml", type=click.Path(path_type=Path))
@weights_option
@pin_option
@shapes_option
@click.option("--fp16", is_flag=True, help="Store constants of f32 and f64 as f16, as OpenVINO's save_model does.")
@click.option("--strip-rt-info", is_flag=True, help="Leave out what rt_info says: of the model, its layers and ports.")
@click.option("--force", is_flag=True, help="Replace existing files.")
def command(
    model: Path,
    target: Path,
    weights: Path | None,
    shapes: tuple[str, ...],
    fp16: bool,
    strip_rt_info: bool,
    force: bool,
    limits: Limits,
    pins: dict[str, str] | None,
) -> int:
    r"""Write MODEL (.xml) anew as TARGET.xml and the .bin beside it, in IR version 11.

    Ports declare what is inferred, layers that no output depends on are left out, ids are given anew. OpenVINO loads
    the files and computes the same (with --fp16: with constants that are rounded). Both files appear whole or not at
    all; MODEL itself is never replaced.

    \b
      irrun save model.xml half.xml --fp16
      irrun save model.xml fixed.xml --shape 'image[1,3,224,224]'
      irrun save v10.xml v11.xml --strip-rt-info
    """
    from irload import read_model, save_model
    from irrun.notice import Notice
    from irrun.render import progress, safe, stderr

    files = [target, target.with_suffix(".bin")]
    _require_free(files, model, weights, force=force)
    with progress("reading the model"):
        loaded = read_model(model, weights, limits=limits, sha256=pins)
        if shapes:
            loaded.reshape(shapes_of(loaded, shapes))
    Notice()(loaded.differences)
    if strip_rt_info:
        _strip(loaded)
    with progress("writing"):
        save_model(loaded, target, compress_to_fp16=fp16)
    for file in files:
        stderr().print(f"wrote {safe(file)}, {file.stat().st_size:,} bytes", soft_wrap=True)
    return 0


def _require_free(files: list[Path], model: Path, weights: Path | None, *, force: bool) -> None:
    """Raise UsageError for a target that exists, is no .xml, or is the model itself."""
    if files[0].suffix.lower() != ".xml":
        raise click.UsageError(f"TARGET must end in .xml, found {files[0].name}")
    if not files[0].parent.is_dir():
        raise click.UsageError(f"the folder {files[0].parent} does not exist")
    for file in files:
        for own in (model, weights or model.with_suffix(".bin")):
            if file.exists() and own.exists() and file.samefile(own):
                raise click.UsageError(f"{file} is the model itself; name another TARGET")
        if (file.exists() or file.is_symlink()) and not force:
            raise click.UsageError(f"{file} exists already; --force replaces it")


def _strip(model: Model) -> None:
    """Forget the rt_info of a model, its layers and their ports, of bodies too."""
    model.rt_info = {}
    for graph in model.walk():
        for node in graph.nodes:
            node.rt_info = []
            for output in node.outputs:
                output.rt_info = []
