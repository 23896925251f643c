"""Writes docs/imports.md from the import contracts in pyproject.toml: each module, its purpose, and its imports.

python docs/make_imports.py
"""

from __future__ import annotations

import ast
import tomllib
from pathlib import Path
from typing import Any

import grimp

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "imports.md"
INTRODUCTION = """\
# Imports

Written by `python docs/make_imports.py` from the contracts in `pyproject.toml`, which `make lint` checks with
import-linter; a test checks that the page is current. A module imports only from layers with higher numbers.
"""


def page() -> str:
    """The text of the page."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]["contracts"]
    graph = grimp.build_graph("irload", "irrun", exclude_type_checking_imports=True, cache_dir=None)
    return "\n".join([INTRODUCTION, *(_table(graph, c) for c in contracts if c["type"] == "layers")])


def _table(graph: Any, contract: dict[str, Any]) -> str:
    prefix = f"{contract['containers'][0]}." if "containers" in contract else ""
    layers = [[f"{prefix}{name.strip()}" for name in layer.split("|")] for layer in contract["layers"]]
    order = [module for layer in layers for module in layer]
    lines = [f"## {contract['name']}\n", "| layer | module | purpose | imports |", "|---|---|---|---|"]
    for number, layer in enumerate(layers, 1):
        for module in layer:
            imports = [other for other in order if other != module and _imports(graph, module, other)]
            shown = ", ".join(name.removeprefix(prefix) for name in imports)
            lines.append(f"| {number} | `{module}` | {_purpose(module)} | {shown} |")
    return "\n".join([*lines, ""])


def _imports(graph: Any, module: str, other: str) -> bool:
    """True where `module` or a module inside it imports `other` or a module inside that."""
    return graph.direct_import_exists(importer=module, imported=other, as_packages=True)


def _purpose(module: str) -> str:
    """The first sentence of the module's docstring."""
    path = Path(*module.split("."))
    folder = ROOT / ("cli" if path.parts[0] == "irrun" else "")
    file = next(f for f in (folder / path / "__init__.py", folder / path.with_suffix(".py")) if f.exists())
    text = ast.get_docstring(ast.parse(file.read_text("utf-8"))) or ""
    return text.partition("\n")[0].replace("|", "\\|")


if __name__ == "__main__":
    PAGE.write_text(page(), "utf-8")
