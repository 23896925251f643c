"""The pages of the documentation site: links resolve, and the reference covers all names."""

from __future__ import annotations

import importlib.util
import re
import sys
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

import irload

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_site", ROOT / "docs" / "make_site.py")
    assert spec is not None
    assert spec.loader is not None
    site = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(site)
    return site


@pytest.fixture(scope="module")
def pages(site: ModuleType, tmp_path_factory: pytest.TempPathFactory) -> Path:
    site.PAGES = tmp_path_factory.mktemp("site") / "pages"
    before = list(sys.path)
    site.main()
    sys.path[:] = before
    return site.PAGES


def test_links_lead_to_pages(pages: Path) -> None:
    broken = [
        f"{page.relative_to(pages)}: {target}"
        for page in pages.rglob("*.md")
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)\s]*)?\)", outside_of_code(page.read_text("utf-8")))
        if not (page.parent / target).is_file()
    ]
    assert not broken


def outside_of_code(text: str) -> str:
    return re.sub(r"(?ms)^\s*```.*?^\s*```", "", text)


def test_every_public_name_is_in_the_reference(pages: Path) -> None:
    text = (pages / "docs" / "reference.md").read_text("utf-8")
    assert all(f"### irload.{name}\n" in text for name in irload.__all__)
    assert "::: irload.runtime.compiled_model.CompiledModel" in text


def test_every_example_is_shown(pages: Path) -> None:
    text = (pages / "examples" / "README.md").read_text("utf-8")
    for file in (ROOT / "examples").glob("*.py"):
        assert f"## {file.name}\n\n```python\n{file.read_text('utf-8')}```" in text


def test_pages_of_the_navigation_exist(pages: Path) -> None:
    named = re.findall(r": (\S+\.md)$", (ROOT / "mkdocs.yml").read_text("utf-8"), re.MULTILINE)
    assert len(named) > 15
    assert all((pages / name).is_file() for name in named)


def test_lowest_versions_equal_the_requirements_of_the_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    for requirement in [*project["dependencies"], *project["optional-dependencies"]["test"]]:
        assert requirement.startswith("irload[") or re.fullmatch(r"[A-Za-z0-9_.-]+>=[0-9.]+", requirement), requirement


def test_workflows_call_existing_targets() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    for file in (".github/workflows/ci.yml", ".gitlab-ci.yml", ".ci/run"):
        called = re.findall(r"\bmake ([a-z][a-z-]+)", (ROOT / file).read_text("utf-8"))
        assert {"test", "test-lowest", "test-ray", "dist", "docs", "lint"} <= set(called), file
        assert set(called) <= targets | {"and"}, file


def test_every_operation_and_rule_is_on_a_page(site: ModuleType, pages: Path) -> None:
    """Checks the contents of the pages; `make docs` checks the built search index."""
    words = set(re.findall(r"\w+", " ".join(page.read_text("utf-8") for page in pages.rglob("*.md"))))
    assert {"NonMaxSuppression", "IR401", "read_model", "save"} <= site.searched_names()
    assert site.searched_names() - words == set()
