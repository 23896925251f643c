"""The index that maps each operation to its module, from which the registry imports it."""

from __future__ import annotations

import subprocess
import sys

from tests import index


def test_the_index_is_current() -> None:
    """On failure, run `python -m tests.index`, which writes the index."""
    assert index.FILE.read_text(encoding="utf-8") == index.text()


def test_an_operation_imports_only_what_it_needs() -> None:
    script = (
        "import sys; from irload.ops.registry import resolve; resolve('Pad', 'opset12');"
        "print(*sorted(m for m in sys.modules if m.startswith('irload.ops.') and m.count('.') == 3))"
    )
    process = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert process.stdout.split() == ["irload.ops.movement.pad", "irload.ops.movement.slicing"]
