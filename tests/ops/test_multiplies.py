"""Operations whose `compute` multiplies matrices declare it, so that plans limit the threads of BLAS."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterator
from types import ModuleType

from irload.core.op import Op
from irload.ops import registry

PRODUCTS = {"dot", "einsum", "inner", "linalg", "matmul", "tensordot", "vdot"}
"""Functions and modules of NumPy that use BLAS."""
HELPERS = {"irload.ops.detection.sampling": "irload.ops.detection.roi_align"}
"""Modules without operations that multiply, and the operations that call them."""


def multiplying(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.walk(tree):
        is_function = isinstance(node, ast.Attribute) and node.attr in PRODUCTS and ast.unparse(node.value) == "np"
        if is_function or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult)):
            yield node


def operations(module: ModuleType) -> list[type[Op]]:
    classes = [c for _, c in inspect.getmembers(module, inspect.isclass) if c.__module__ == module.__name__]
    return [c for c in classes if issubclass(c, Op)]


def test_every_module_that_multiplies_declares_it() -> None:
    assert list(registry.registered())  # imports all modules
    modules = {n: m for n, m in sys.modules.items() if n.startswith("irload.ops.")}
    found = {n for n, m in modules.items() if any(multiplying(ast.parse(inspect.getsource(m))))}
    assert found.issuperset({"irload.ops.matrix.matmul", "irload.ops.sequence.cells", *HELPERS})
    for name in found:
        module = modules[HELPERS.get(name, name)]
        assert any(operation.multiplies for operation in operations(module)), name
