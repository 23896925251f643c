"""The layers of the package: what pyproject.toml states, what the code imports, and the diagram of both.

The diagram is a section of docs/architecture.md; `python -m tests.layers` writes it anew.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from textwrap import fill

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "architecture.md"
BEGIN, END = "<!-- layers: written by python -m tests.layers -->", "<!-- end of layers -->"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


SOURCES: Mapping[str, Path] = {
    module(file.relative_to(base)): file
    for base, package in ((ROOT, "irload"), (ROOT / "cli", "irrun"))
    for file in sorted((base / package).rglob("*.py"))
}
"""The file of each module."""


@cache
def tree(name: str) -> ast.Module:
    return ast.parse(SOURCES[name].read_text(encoding="utf-8"))


@cache
def imported(name: str) -> frozenset[str]:
    """What a module imports when it runs, as written; imports under TYPE_CHECKING are left out."""
    typing_only = {
        id(node)
        for block in ast.walk(tree(name))
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for statement in block.body
        for node in ast.walk(statement)
    }
    found: set[str] = set()
    for node in ast.walk(tree(name)):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level or not node.module:
                raise AssertionError(f"{name}, line {node.lineno}: imports are absolute here")
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            found |= {a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)}
    return frozenset(found)


@cache
def edges(name: str) -> frozenset[str]:
    """The modules of this project that a module imports: the longest known beginnings of what it names."""
    found: set[str] = set()
    for target in imported(name):
        while target and target not in SOURCES:
            target = target.rpartition(".")[0]
        if target and target != name:
            found.add(target)
    return frozenset(found)


@dataclass(frozen=True)
class Contract:
    """One list of layers, top first. Modules of one layer do not import each other, either."""

    name: str
    layers: tuple[tuple[str, ...], ...]
    container: str = ""

    def place(self, name: str) -> tuple[int, str] | None:
        """The number of the layer in which a module stands, and the entry that covers it."""
        for number, layer in enumerate(self.layers):
            for entry in layer:
                if name == entry or name.startswith(f"{entry}."):
                    return number, entry
        return None

    def breaches(self) -> Iterator[str]:
        for name in SOURCES:
            here = self.place(name)
            for target in sorted(edges(name)):
                there = self.place(target)
                if here is not None and there is not None and there != here and there[0] <= here[0]:
                    yield f"{name} imports {target}"


def contracts() -> list[Contract]:
    found: list[Contract] = []
    for stated in PROJECT["tool"]["importlinter"]["contracts"]:
        for container in stated.get("containers", [""]):
            start = f"{container}." if container else ""
            layers = tuple(
                tuple(start + entry.strip(" ()") for entry in layer.split("|")) for layer in stated["layers"]
            )
            found.append(Contract(stated["name"], layers, container))
    return found


def cycles(names: set[str]) -> list[list[str]]:
    """Groups of modules that import each other, directly or by way of others among `names`."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(name: str) -> None:
        index[name] = low[name] = len(index)
        stack.append(name)
        for target in sorted(edges(name) & names):
            if target not in index:
                visit(target)
                low[name] = min(low[name], low[target])
            elif target in stack:
                low[name] = min(low[name], index[target])
        if low[name] == index[name]:
            group = stack[stack.index(name) :]
            del stack[-len(group) :]
            if len(group) > 1:
                found.append(sorted(group))

    for name in sorted(names):
        if name not in index:
            visit(name)
    return found


def diagram() -> str:
    """The contracts as text: each layer with its modules, what they are for, and what they import from below."""
    blocks = [_drawn(contract) for contract in contracts()]
    return "\n\n".join([BEGIN, *blocks, END])


def _drawn(contract: Contract) -> str:
    lines = [f"{contract.name}:", "", "```"]
    for number, layer in enumerate(contract.layers):
        lines += ["─" * 110] if number else []
        for entry in layer:
            short = entry.removeprefix(contract.container or "irload").removeprefix(".")
            uses = {
                place[1]
                for name in SOURCES
                if (name == entry or name.startswith(f"{entry}."))
                for target in edges(name)
                if (place := contract.place(target)) is not None and place[1] != entry
            }
            order = [e for level in contract.layers for e in level if e in uses]
            names = ", ".join(e.removeprefix(contract.container or "irload").removeprefix(".") for e in order)
            about = (ast.get_docstring(tree(entry)) or "").split("\n")[0]
            lines.append(fill(about, 110, initial_indent=f"{short:<16}", subsequent_indent=" " * 16))
            lines += [fill(f"→ {names}", 110, initial_indent=" " * 16, subsequent_indent=" " * 18)] if names else []
    return "\n".join([*lines, "```"])


def page() -> str:
    """docs/architecture.md with the diagram as it should be."""
    text = PAGE.read_text(encoding="utf-8")
    return text[: text.index(BEGIN)] + diagram() + text[text.index(END) + len(END) :]


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
