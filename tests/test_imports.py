"""The layers of the package, as pyproject.toml states them, hold; and no kernel framework sneaks in."""

from __future__ import annotations

import ast
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCES = {
    **{f: f.relative_to(ROOT) for f in (ROOT / "irload").rglob("*.py")},
    **{f: f.relative_to(ROOT / "cli") for f in (ROOT / "cli").rglob("*.py")},
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def imported(file: Path) -> set[str]:
    """The modules that a file imports when it runs; those under TYPE_CHECKING are left out."""
    found: set[str] = set()
    tree = ast.parse(file.read_text(encoding="utf-8"))
    typing_only = {
        id(node)
        for block in ast.walk(tree)
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
    }
    for node in ast.walk(tree):
        if id(node) in typing_only:
            continue
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def test_imports_go_strictly_down():
    """The same contract that import-linter holds, so that the suite alone catches a breach."""
    (contract,) = PROJECT["tool"]["importlinter"]["contracts"]
    ranks = {name.strip(" ()"): k for k, level in enumerate(contract["layers"]) for name in level.split("|")}

    def rank(name: str) -> int | None:
        return next(
            (ranks[p] for p in sorted(ranks, key=len, reverse=True) if name == p or name.startswith(f"{p}.")), None
        )

    breaches: list[str] = []
    for file, path in SOURCES.items():
        own = rank(module(path))
        for target in imported(file) if own is not None else ():
            other = rank(target)
            if other is not None and other < own:
                breaches.append(f"{module(path)} imports {target}")
    assert breaches == []


def test_only_declared_dependencies_are_imported():
    declared = {d.split(">")[0].split("[")[0].strip() for d in PROJECT["project"]["dependencies"]}
    extras = {"pyarrow", "pandas", "ray", "llvmlite", "PIL"}  # imported where they are installed, never required
    allowed = declared | extras | {"irload", "irrun"} | set(sys.stdlib_module_names)
    strange = {
        f"{module(path)}: {name}"
        for file, path in SOURCES.items()
        for name in imported(file)
        if name.split(".")[0] not in allowed
    }
    assert strange == set()
