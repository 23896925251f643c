"""Only backends/numpy/kernels/views.py reshapes bound memory: NumPy's reshape may copy without notice."""

from __future__ import annotations

import ast
from pathlib import Path

import numpy as np
import pytest

import irload.plan
from irload.plan.backends.numpy.kernels.views import frozen, leading, merged, shaped, shaped_constant

PLAN = Path(irload.plan.__file__).parent
COPYING = {"reshape", "ravel", "flatten", "resize"}
"""Functions that return a view or a copy, depending on the strides."""


@pytest.mark.parametrize("file", sorted(PLAN.glob("backends/numpy/**/*.py")), ids=lambda f: f.name)
def test_only_views_py_reshapes_bound_memory(file: Path) -> None:
    if file.name == "views.py":
        return
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Attribute) and node.attr in COPYING:
            pytest.fail(f"{file.name}:{node.lineno}: .{node.attr} may copy; use kernels/views.py")


def test_a_view_in_another_shape_is_one_or_an_error() -> None:
    array = np.arange(6.0).reshape(2, 3)
    assert np.shares_memory(shaped(array, 3, 2), array)
    with pytest.raises(ValueError, match="copy"):
        shaped(array.T, 6)
    assert merged(array.T, 6) is None
    assert leading(array, 4).shape == (1, 1, 2, 3)


def test_constants_are_copied_if_no_view_exists() -> None:
    array = np.ones((2, 3))
    assert np.shares_memory(shaped_constant(array, 6), array)
    copied = shaped_constant(array.T, 6)
    assert not np.shares_memory(copied, array)
    assert not copied.flags.writeable
    assert not frozen(array).flags.writeable
