"""Shell completion of rule codes and layer names. Never fails, and reads only the XML of a model."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import click
from click.shell_completion import CompletionItem, split_arg_string

MAX_CANDIDATES = 500
"""Upper bound of the names offered at once."""


def rule_codes(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Complete rule codes, with their titles; of a comma-separated list the last code is completed."""
    from irload.checks import all_rules

    before, comma, last = incomplete.rpartition(",")
    return [
        CompletionItem(f"{before}{comma}{rule.code}", help=rule.title)
        for rule in all_rules()
        if rule.code.startswith(last.upper())
    ]


def layer_names(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """Return the layer names of the model on the command line, with their types."""
    from irload import IRError
    from irload.read import read_xml

    model = ctx.params.get("model") or _named_file()
    types: dict[str, str] = {}
    with suppress(IRError, OSError, RecursionError):
        if model is not None:
            graphs = [read_xml(Path(model), lambda fault: None).graph]
            for graph in graphs:  # grows during the iteration
                for layer in graph.layers:
                    types.setdefault(layer.name, layer.type)
                    graphs += layer.bodies.values()
    names = [name for name in types if name.startswith(incomplete) and name.isprintable()]
    return [CompletionItem(name, help=types[name]) for name in names[:MAX_CANDIDATES]]


def _named_file() -> str | None:
    """Return the .xml file on the command line; click does not parse the words after an option without a value."""
    words = split_arg_string(os.environ.get("COMP_WORDS", ""))
    return next((word for word in words if word.lower().endswith(".xml")), None)
