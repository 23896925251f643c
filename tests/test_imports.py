"""The page of imports is current, and irload imports no undeclared package. `make lint` checks the import contracts."""

from __future__ import annotations

import importlib.util
import sys
import tomllib
from pathlib import Path

import grimp

ROOT = Path(__file__).parents[1]
OPTIONAL = {
    "regex",
    "sentencepiece",
    "pyarrow",
    "pandas",
    "ray",
    "llvmlite",
    "xxhash",
    "PIL",
    "jinja2",
    "markupsafe",
    "openvino",
    "onnx",
    "onnxruntime",
}
"""Imported if installed, never required."""


def test_the_page_is_current():
    spec = importlib.util.spec_from_file_location("make_imports", ROOT / "docs" / "make_imports.py")
    make_imports = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(make_imports)
    assert make_imports.page() == make_imports.PAGE.read_text("utf-8"), "run python docs/make_imports.py"


def test_only_declared_dependencies_are_imported():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    declared = {d.split(">")[0].split("[")[0].strip() for d in project["dependencies"]}
    graph = grimp.build_graph("irload", "irrun", include_external_packages=True, cache_dir=None)
    outside = {module for module in graph.modules if graph.is_module_squashed(module)}
    assert declared < outside
    assert outside - declared - OPTIONAL - set(sys.stdlib_module_names) == set()


def test_back_ends_are_reached_through_their_registry():
    """The import contract ignores imports under TYPE_CHECKING; this test includes them."""
    graph = grimp.build_graph("irload", "irrun", exclude_type_checking_imports=False, cache_dir=None)
    packages = ("irload.plan.backends.llvm", "irload.plan.backends.numpy")
    imports = {
        f"{importer} imports {module}"
        for package in packages
        for module in {package, *graph.find_descendants(package)}
        for importer in graph.find_modules_that_directly_import(module)
        if importer != "irload.plan.backends.registry" and not importer.startswith(package)
    }
    assert not imports
