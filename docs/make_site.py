"""Assembles the pages of the documentation site in build/pages; `make docs` has MkDocs build it from there.

python docs/make_site.py           the pages, laid out as in the repository, with the reference of the API added
python docs/make_site.py --check   fails if the search of the built site misses a name
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
SITE = ROOT / "build" / "site"
TEXTS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "LICENSE")
FOLDERS = ("docs", "schemas", "examples")
_LINK = re.compile(r"\[([^\[\]]*)\]\(([^)#:\s]+)(#[^)\s]*)?\)")


def main() -> None:
    """Write all pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    PAGES.mkdir(parents=True)
    for name in TEXTS:
        shutil.copy(ROOT / name, PAGES)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, PAGES / folder, ignore=shutil.ignore_patterns("__pycache__", "make*.py"))
    _write("schemas/README.md", _index("Schemas", sorted((PAGES / "schemas").iterdir())))
    _write("docs/decisions/README.md", _index("Decisions", sorted((PAGES / "docs" / "decisions").glob("*.md"))))
    _write("examples/README.md", _examples())
    _write("docs/reference.md", _reference())
    for page in PAGES.rglob("*.md"):
        _write(page.relative_to(PAGES).as_posix(), _relinked(page))


def _write(name: str, text: str) -> None:
    (PAGES / name).write_text(text, encoding="utf-8")


def _index(title: str, files: list[Path]) -> str:
    """A page that lists files by their first headings, or by their names."""
    rows = [f"# {title}\n"]
    for file in files:
        heading = file.read_text("utf-8").splitlines()[0].removeprefix("# ") if file.suffix == ".md" else file.name
        rows.append(f"- [{heading}]({file.name})")
    return "\n".join(rows) + "\n"


def _examples() -> str:
    """The page of the examples, with their source."""
    text = (ROOT / "examples" / "README.md").read_text("utf-8")
    for file in sorted((ROOT / "examples").glob("*.py")):
        text += f"\n## {file.name}\n\n```python\n{file.read_text('utf-8')}```\n"
    return text


def _reference() -> str:
    """A page with every public name and its docstring."""
    sys.path.insert(0, str(ROOT))
    import irload

    packages = ("irload", "irload.edit", "irload.arrays.npy", "irload.batch")
    parts = [f"# Python reference\n\nEvery public name of {', '.join(f'`{p}`' for p in packages)}.\n"]
    for package in packages:
        module = irload if package == "irload" else import_module(package)
        parts.append(f"## {package}\n")
        for name in sorted(module.__all__):
            value = getattr(module, name)
            is_module = isinstance(value, type(sys))
            home = value.__name__ if is_module else f"{getattr(value, '__module__', '')}.{name}"
            home = home if home.startswith("irload.") else f"{package}.{name}"
            options = "    options:\n      members: false\n" if is_module else ""
            parts.append(f"### {package}.{name}\n\n::: {home}\n{options}")
    return "\n".join(parts)


def _relinked(page: Path) -> str:
    """The page with links to folders replaced by links to their pages, and links outside the site by text."""

    def link(match: re.Match[str]) -> str:
        text, target, anchor = match[1], match[2], match[3] or ""
        there = page.parent / target
        if there.is_dir():
            return f"[{text}]({target.rstrip('/')}/README.md{anchor})"
        return match[0] if there.exists() else text

    lines: list[str] = []
    fenced = False
    for line in page.read_text("utf-8").splitlines():
        fenced ^= line.lstrip().startswith("```")
        lines.append(line if fenced else _LINK.sub(link, line))
    return "\n".join(lines) + "\n"


def searched_names() -> set[str]:
    """The names that the search must find: operations, rules, public names and commands."""
    import irload
    from irload.checks import all_rules
    from irload.ops.registry import registered
    from irrun.app import COMMANDS

    names = {cls.type for cls in registered() if cls.__module__.startswith("irload.ops.")}
    return names | {rule.code for rule in all_rules()} | set(irload.__all__) | set(COMMANDS)


def check() -> None:
    """Exit with a message if the search index of the built site lacks a name."""
    index = json.loads((SITE / "search" / "search_index.json").read_text("utf-8"))["docs"]
    text = " ".join(f"{entry['title']} {entry['text']}" for entry in index)
    words = set(re.findall(r"\w+", text))
    missing = sorted(searched_names() - words)
    if missing:
        raise SystemExit(f"the search does not find {', '.join(missing)}")


if __name__ == "__main__":
    check() if "--check" in sys.argv else main()
