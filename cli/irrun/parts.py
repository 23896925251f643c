"""The optional parts of `irrun inspect`: their documents and their display."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from irrun.document import Document
from irrun.inspect_report import layers_report, render, render_header, render_layers, render_metadata, report
from irrun.render import safe, show_warnings, stdout
from irrun.survey import Filter, Survey, layers_of


def with_parts(
    path: Path,
    surveyed: Survey,
    *,
    layers: bool,
    wanted: str | None,
    constants: bool,
    macs: bool,
    memory: bool,
    tree: bool,
    types: Sequence[str],
    names: Sequence[str],
) -> Document:
    """Return the document of schemas/inspect.schema.json with the requested parts."""
    document = report(path, surveyed)
    every = layers_of(surveyed.model)
    choice = Filter(types, names)
    chosen = choice.of(every)
    if layers or (choice and not (constants or macs)):
        document["layers"] = layers_report(chosen)
    if wanted is not None:
        from irrun.layer import layer_report

        document["layer"] = layer_report(surveyed, every, wanted)
    if constants:
        from irrun.constants import weights_report

        document["tensors"] = weights_report(every, chosen)
    if macs or memory:
        from irrun.costs import macs_report, memory_report

        document |= {"macs": macs_report(chosen)} if macs else {}
        document |= {"memory": memory_report(surveyed.model)} if memory else {}
    if surveyed.model.digests is not None:
        digests = surveyed.model.digests
        document["sha256"] = {"model": digests.model, "xml": digests.xml, "bin": digests.bin}
    if tree:
        from irrun.bodies import tree_report

        document["tree"] = tree_report(surveyed.model)
    return document


def show(document: Document, choice: Filter, *, metadata: bool = False) -> None:
    """Show the requested parts on stdout, or the default report if none was requested. `choice`: the chosen layers."""
    shown = [part for part in ("layers", "layer", "tensors", "macs", "memory", "tree", "sha256") if part in document]
    shown += ["metadata"] if metadata else []
    if not shown:
        render(document)
        return
    render_header(document)
    for part in shown:
        stdout().print()
        if choice and part in ("layers", "tensors") and not document[part]:
            kind = "layer" if part == "layers" else "constant"
            stdout().print(f"no {kind} matches {safe(choice)}", soft_wrap=True)
        else:
            _show_part(part, document)
    show_warnings(document["warnings"])


def _show_part(part: str, document: Document) -> None:
    content = document[part]
    if part == "layers":
        render_layers(content)
    elif part == "layer":
        from irrun.layer import render_layer

        render_layer(content)
    elif part == "tensors":
        from irrun.constants import render_weights

        render_weights(content)
    elif part == "metadata":
        render_metadata(content)
    elif part == "tree":
        from irrun.bodies import render_tree

        render_tree(document["name"] or document["model"], content)
    elif part == "sha256":
        for file, kind in (("both together", "model"), (document["model"], "xml"), (document["weights"], "bin")):
            if content[kind] is not None:  # in the format of sha256sum; a table would truncate digests
                stdout().print(f"{content[kind]}  {safe(file)}", soft_wrap=True)
    else:
        from irrun.costs import render_macs, render_memory

        (render_macs if part == "macs" else render_memory)(content)
