"""`irrun diff`: shows the edits between two models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from irload import Limits
from irrun.arguments import extension_option, json_option, limit_option, weights_of_two_models
from irrun.document import Document

if TYPE_CHECKING:
    from irload import Difference
    from irload.comparison.edits import Change, LayerEdit


SHOWN = 20
"""Upper bound of the outputs shown that changed only because of edits before them; --all shows every one."""
COLOURS = {"-": "red", "+": "green", "@": "cyan", "~": "yellow"}


@click.command("diff", no_args_is_help=True)
@click.argument("a", metavar="A", type=click.Path(path_type=Path))
@click.argument("b", metavar="B", type=click.Path(path_type=Path))
@click.option("--all", "every", is_flag=True, help="Show every edit, and every layer whose shape follows from them.")
@click.option("--ignore", multiple=True, type=click.Choice(["names"]), help="Ignore edits that only rename.")
@click.option("--weights-a", type=click.Path(path_type=Path), metavar="FILE", help="The .bin file of A.")
@click.option("--weights-b", type=click.Path(path_type=Path), metavar="FILE", help="The .bin file of B.")
@extension_option
@limit_option
@json_option
def command(
    a: Path,
    b: Path,
    every: bool,
    ignore: tuple[str, ...],
    weights_a: Path | None,
    weights_b: Path | None,
    limits: Limits,
    as_json: bool,
) -> int:
    r"""Show the edits between two MODELs (.xml), A and B: layers, attributes, constants, edges.

    Layers are matched by structure, independently of names. If the computation differs, edits of names and of the
    precision of weights are only counted (--all lists them). Exit code 0 if nothing differs, else 1.

    \b
      irrun diff original.xml exported.xml
      irrun diff model.xml model_fp16.xml --json
    """
    from irload import diff
    from irrun.render import progress, show_json

    with progress("comparing"), weights_of_two_models():
        difference = diff(a, b, ignore=ignore, limits=limits, weights_a=weights_a, weights_b=weights_b)
    if as_json:
        show_json(_document(difference))
    else:
        _render(difference, every=every)
    return 0 if difference.same else 1


def _document(difference: Difference) -> Document:
    """Return the document of schemas/diff.schema.json."""
    return {
        "a": difference.a,
        "b": difference.b,
        "same": difference.same,
        "kind": difference.kind,
        "summary": difference.summary,
        "layers": list(difference.layers),
        "edits": [_edit(e) for e in difference.edits],
        "follows": [{"name": f.name, "operation": f.operation, "a": f.a, "b": f.b} for f in difference.follows],
        "unused": difference.unused,
        "notes": difference.notes,
    }


def _edit(edit: LayerEdit) -> Document:
    return {
        "kind": edit.kind,
        "name": edit.name,
        "operation": edit.operation,
        "place": edit.place,
        "id": list(edit.id),
        "line": list(edit.line),
        "changes": [_change(c) for c in edit.changes],
    }


def _change(change: Change) -> Document:
    values = change.values
    names = ("size", "differing", "max_abs", "relative")
    numbers = None if values is None else {name: getattr(values, name) for name in names}
    return {"what": change.what, "key": change.key, "a": change.a, "b": change.b, "values": numbers}


def _render(difference: Difference, *, every: bool) -> None:
    from irrun.render import safe, stderr, stdout

    console = stdout()
    for note in difference.notes[:SHOWN]:
        stderr().print(f"[yellow]note:[/] {safe(note)}", soft_wrap=True)
    for line in difference.lines(every=every):
        colour = COLOURS[line[:1]]
        console.print(f"[{colour}]{safe(line)}[/]", soft_wrap=True)
    shown = difference.follows if every else difference.follows[:SHOWN]
    if shown and difference.kind != "shapes":
        console.print(f"\nFollow from the edits: {len(difference.follows)} outputs have another type or shape")
    for f in shown if every or difference.kind != "shapes" else ():
        console.print(f"[dim]   {safe(f.name)} ({safe(f.operation)}): {safe(f.a)} → {safe(f.b)}[/]", soft_wrap=True)
    if difference.unused:
        some = ", ".join(difference.unused[:SHOWN])
        console.print(f"[dim]Used by the outputs of one model only: {safe(some)}[/]", soft_wrap=True)
    colour = "green" if difference.same else "bold"
    console.print(f"{'' if difference.same else chr(10)}[{colour}]{safe(difference.summary)}[/]", soft_wrap=True)
