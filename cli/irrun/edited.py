"""Commands that change a model: they read it, edit it, write the result and describe it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from irrun.arguments import json_option, model_argument, pin_option, shapes_option, weights_option
from irrun.records import Source

if TYPE_CHECKING:
    from irload import Model, Port

    Edit = Callable[[Model], Model]


def editing(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the argument MODEL, the options of reading it, and the options of the file to write."""
    options: list[Callable[..., Any]] = [
        click.option(
            "-o",
            "--output",
            "target",
            required=True,
            metavar="NEW.xml",
            type=click.Path(path_type=Path),
            help="The new file.",
        ),
        weights_option,
        pin_option,
        shapes_option,
        click.option("--force", is_flag=True, help="Replace existing files."),
        json_option,
    ]
    for option in reversed(options):
        command = option(command)
    return model_argument(command)


def write_edited(
    source: Source, target: Path, edits: Sequence[tuple[str, Edit]], *, force: bool, as_json: bool
) -> None:
    """Apply edits, each with its description, in order; write the model, and show its inputs and outputs."""
    from irload import save_model
    from irload.analysis.memory import constant_bytes
    from irrun.render import progress, safe, show_json, stderr, stdout, table
    from irrun.save import require_free

    require_free([target, target.with_suffix(".bin")], source.model, source.weights, force=force)
    with progress("reading the model"):
        model = source.read()
    for text, edit in edits:
        with progress(text):
            model = edit(model)
    with progress("writing"):
        save_model(model, target)
    if as_json:
        show_json(
            {
                "model": str(source.model),
                "target": str(target),
                "edits": [text for text, _ in edits],
                "inputs": [_port(p) for p in model.inputs],
                "outputs": [_port(p) for p in model.outputs],
                "layer_count": len(model.nodes),
                "constant_bytes": constant_bytes(model),
            }
        )
    else:
        rows = table("port", "name", "type", "shape")
        for kind, ports in (("input", model.inputs), ("output", model.outputs)):
            for port in ports:
                rows.add_row(kind, *(safe(text) for text in _port(port).values()))
        stdout().print(rows)
    size = target.with_suffix(".bin").stat().st_size
    stderr().print(f"wrote {safe(target)}: {len(model.nodes):,} layers, {size:,} bytes of weights", soft_wrap=True)


def _port(port: Port) -> dict[str, str]:
    return {"name": port.any_name, "type": port.element_type.name, "shape": str(port.partial_shape)}
