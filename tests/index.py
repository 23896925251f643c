"""`python -m tests.index` writes irload/ops/index.py from the registered classes."""

from __future__ import annotations

from pathlib import Path

from irload.ops.registry import registered

FILE = Path(__file__).parents[1] / "irload" / "ops" / "index.py"

HEADER = '''"""The module that defines each operation, so that a model imports only the modules that it needs.

Written by `python -m tests.index`; a test checks that it is current.
"""

MODULES = {
'''


def text() -> str:
    """The content for the current registry."""
    operations: dict[str, set[str]] = {}
    for cls in registered():
        if cls.__module__.startswith("irload.ops."):
            names = operations.setdefault(cls.__module__.removeprefix("irload.ops."), set())
            names.add(cls.type if cls.namespace == "opset" else f"{cls.namespace}:{cls.type}")
    rows = [f'    "{module}": "{" ".join(sorted(names))}",' for module, names in sorted(operations.items())]
    return HEADER + "\n".join(_wrapped(row) for row in rows) + "\n}\n"


def _wrapped(row: str) -> str:
    """The row, split into several lines if it exceeds the line length."""
    if len(row) <= 120:
        return row
    module, names = row.strip().rstrip(",").split(": ", 1)
    if len(names) <= 112:  # which the formatter would join
        return "\n".join([f"    {module}: (", f"        {names}", "    ),"])
    lines: list[str] = [""]
    for name in names.strip('"').split():
        if len(lines[-1]) + len(name) > 105:
            lines.append("")
        lines[-1] += f"{name} "
    lines[-1] = lines[-1].rstrip()
    return "\n".join([f"    {module}: (", *(f'        "{line}"' for line in lines), "    ),"])


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
