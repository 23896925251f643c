"""The layers of the package, as pyproject.toml states them, hold; and no kernel framework sneaks in."""

from __future__ import annotations

import sys

import pytest

from tests.layers import PAGE, PROJECT, SOURCES, Contract, contracts, cycles, imported, page


@pytest.mark.parametrize("contract", contracts(), ids=lambda c: c.container or "irload and irrun")
def test_imports_go_strictly_down(contract: Contract):
    """The same contract that import-linter holds, so that the suite alone catches a breach."""
    assert list(contract.breaches()) == []


@pytest.mark.parametrize("contract", contracts(), ids=lambda c: c.container or "irload and irrun")
def test_every_module_stands_in_a_layer(contract: Contract):
    """All but the package itself, which only lists the public names and imports them when they are used."""
    itself = contract.container or "irload"
    inside = {name for name in SOURCES if not contract.container or name.startswith(f"{contract.container}.")}
    assert {name for name in inside - {itself} if contract.place(name) is None} == set()
    stated = [entry for layer in contract.layers for entry in layer]
    assert [entry for entry in stated if entry not in SOURCES] == []


def test_no_files_import_each_other_in_a_circle():
    assert cycles(set(SOURCES)) == []


def test_the_page_shows_the_layers():
    assert page() == PAGE.read_text(encoding="utf-8"), "run python -m tests.layers"


def test_only_declared_dependencies_are_imported():
    declared = {d.split(">")[0].split("[")[0].strip() for d in PROJECT["project"]["dependencies"]}
    extras = {
        "pyarrow",
        "pandas",
        "ray",
        "llvmlite",
        "PIL",
        "jinja2",
        "markupsafe",
        "openvino",
        "onnx",
        "onnxruntime",
    }  # imported where they are installed, never required
    allowed = declared | extras | {"irload", "irrun"} | set(sys.stdlib_module_names)
    strange = {
        f"{name}: {target}" for name in SOURCES for target in imported(name) if target.split(".")[0] not in allowed
    }
    assert strange == set()
