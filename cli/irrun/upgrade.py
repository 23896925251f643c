"""`irrun upgrade`: rewrites a model of IR v2 to v10 as IR v11, which current releases of OpenVINO read."""

from __future__ import annotations

from pathlib import Path

import click

from irrun.arguments import json_option, model_argument, pin_option, shapes_option, weights_option
from irrun.records import Source, records


@click.command("upgrade", no_args_is_help=True)
@model_argument
@click.option(
    "-o", "--output", "target", required=True, metavar="NEW.xml", type=click.Path(path_type=Path), help="The new file."
)
@weights_option
@pin_option
@shapes_option
@click.option("--force", is_flag=True, help="Replace existing files.")
@json_option
@records(source=Source)
def command(source: Source, target: Path, force: bool, as_json: bool) -> int:
    r"""Write MODEL (.xml, IR v2 to v11) as NEW.xml and the .bin beside it, in IR version 11.

    Layers of IR v2 to v7 become operations; the report lists them. Either both files are written or neither; MODEL is
    never replaced. The exit code is 1 if a layer has no equivalent and stays unknown.

    \b
      irrun upgrade old/face-detection.xml -o face-detection.xml
    """
    from irload import save_model
    from irload.graph import UnknownOp
    from irrun.notice import Notice
    from irrun.render import progress, safe, show_json, stderr, stdout
    from irrun.save import require_free

    require_free([target, target.with_suffix(".bin")], source.model, source.weights, force=force)
    with progress("reading the model"):
        loaded = source.read()
    Notice()(loaded.differences)
    unknown = [node for graph in loaded.walk() for node in graph.nodes if isinstance(node.op, UnknownOp)]
    with progress("writing"):
        save_model(loaded, target)
    if as_json:
        show_json(
            {
                "model": str(source.model),
                "ir_version": loaded.ir_version,
                "target": str(target),
                "rewritten": loaded.rewritten,
                "unknown": [{"type": n.type, "name": n.name, "id": n.id, "line": n.line} for n in unknown],
            }
        )
    else:
        for line in loaded.rewritten:
            stdout().print(safe(line), soft_wrap=True)
        for node in unknown:
            stdout().print(f"[red]unknown[/]: {safe(str(node.where(None)))}", soft_wrap=True)
    count = len(loaded.rewritten)
    stderr().print(f"wrote {safe(target)}: IR v{loaded.ir_version} → v11, {count:,} layers rewritten", soft_wrap=True)
    return 1 if unknown else 0
