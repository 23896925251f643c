"""`irrun save`: rewrites a model as IR v11, for other shapes, with constants of f16, or without rt_info."""

from __future__ import annotations

from pathlib import Path

import click

from irrun.arguments import model_argument, pin_option, shapes_option, weights_option
from irrun.records import Source, records


@click.command("save", no_args_is_help=True)
@model_argument
@click.argument("target", metavar="TARGET.xml", type=click.Path(path_type=Path))
@weights_option
@pin_option
@shapes_option
@click.option("--fp16", is_flag=True, help="Store constants of f32 and f64 as f16, as OpenVINO's save_model does.")
@click.option(
    "--strip-rt-info",
    is_flag=True,
    help="Omit the rt_info of the model, its layers and ports.",
)
@click.option("--force", is_flag=True, help="Replace existing files.")
@records(source=Source)
def command(source: Source, target: Path, fp16: bool, strip_rt_info: bool, force: bool) -> int:
    r"""Write MODEL (.xml) as TARGET.xml and the .bin beside it, in IR version 11.

    Ports declare the inferred types and shapes. Layers that no output depends on are omitted; ids are renumbered.
    OpenVINO computes the same results (with --fp16: from rounded constants). Either both files are written or neither;
    MODEL is never replaced.

    \b
      irrun save model.xml half.xml --fp16
      irrun save model.xml fixed.xml --shape 'image[1,3,224,224]'
      irrun save v10.xml v11.xml --strip-rt-info
    """
    from irload import save_model
    from irrun.notice import Notice
    from irrun.render import progress, safe, stderr

    files = [target, target.with_suffix(".bin")]
    require_free(files, source.model, source.weights, force=force)
    with progress("reading the model"):
        loaded = source.read()
    Notice()(loaded.differences)
    if strip_rt_info:
        from irload.edit import strip

        loaded = strip(loaded, rt_info=True)
    with progress("writing"):
        save_model(loaded, target, compress_to_fp16=fp16)
    for file in files:
        stderr().print(f"wrote {safe(file)}, {file.stat().st_size:,} bytes", soft_wrap=True)
    return 0


def require_free(files: list[Path], model: Path, weights: Path | None, *, force: bool) -> None:
    """Raise UsageError for a target that exists, is not an .xml, or is MODEL."""
    if files[0].suffix.lower() != ".xml":
        raise click.UsageError(f"the new model must end in .xml, found {files[0].name}")
    if not files[0].parent.is_dir():
        raise click.UsageError(f"the folder {files[0].parent} does not exist")
    for file in files:
        for original in (model, weights or model.with_suffix(".bin")):
            if file.exists() and original.exists() and file.samefile(original):
                raise click.UsageError(f"{file} is the model itself; choose another name")
        if (file.exists() or file.is_symlink()) and not force:
            raise click.UsageError(f"{file} exists already; --force replaces it")
