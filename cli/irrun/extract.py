"""`irrun extract`: writes a part of a model as a model."""

from __future__ import annotations

from pathlib import Path

import click

from irrun.completion import layer_names
from irrun.edited import editing, write_edited
from irrun.records import Source, records


@click.command("extract", no_args_is_help=True)
@editing
@click.option(
    "--from",
    "inputs",
    multiple=True,
    metavar="TENSOR",
    shell_complete=layer_names,
    help="A tensor that becomes an input; default: the model's inputs.",
)
@click.option(
    "--to",
    "outputs",
    multiple=True,
    metavar="TENSOR",
    shell_complete=layer_names,
    help="A tensor that becomes an output; default: the model's outputs.",
)
@click.option("--at-constants", is_flag=True, help="Allow constants, such as weights, as --from.")
@records(source=Source)
def command(
    source: Source,
    target: Path,
    inputs: tuple[str, ...],
    outputs: tuple[str, ...],
    at_constants: bool,
    force: bool,
    as_json: bool,
) -> int:
    r"""Write the part of MODEL (.xml) between tensors as NEW.xml, with its weights in the .bin beside it.

    TENSOR is the name of a tensor or of the layer that computes it, NAME:1 for one of several outputs of a layer,
    0:NAME for the tensor at an input of a layer, or a pattern such as 'backbone/*', for the tensors that leave the
    matching layers. --from and --to may be repeated.

    \b
      irrun extract detector.xml --to 'backbone/*' -o backbone.xml
      irrun extract detector.xml --from 'backbone/*' -o head.xml
    """
    from irload.edit import extract

    if not inputs and not outputs:
        raise click.UsageError("give --from, --to or both")
    text = " ".join(f"--{side} {name}" for side, names in (("from", inputs), ("to", outputs)) for name in names)
    edits = [(f"extract {text}", lambda m: extract(m, inputs or None, outputs or None, at_constants=at_constants))]
    write_edited(source, target, edits, force=force, as_json=as_json)
    return 0
