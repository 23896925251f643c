"""Thresholds brought down, so that small programs meet the kernels of large ones."""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pkgutil import walk_packages
from typing import Any
from unittest.mock import patch

from irload import plan
from irload.plan.backends.llvm import library
from irload.plan.backends.llvm.kernels import attention, bf16_recurrent_selection, bf16_selection
from irload.plan.backends.numpy.kernels import winograd

SMALL: dict[str, Any] = {
    "ELEMENTS": 16, "PRODUCTS": 64, "TAPS": 32, "TILE": 48, "SHARED": 96, "CONV_TILE": 200,
    "CONV3D_TILE": 200, "POSITIONS": 4, "BLOCK": 96,
    "PANEL": 3000, "TILES": 2, "TRANSFORMED": 64, "RESIDENT": 64, "WAITING": 256, "WORK": 2000, "FEW_CHANNELS": 4,
    "MANY": 4,
    "BAND": 4, "LANES": 4, "HEIGHTS": (8, 4), "WIDTHS": (16, 8, 4),
    "WIDEST": 32,
}  # fmt: skip
"""Numbers of NumPy's kernels by which kernels are chosen, and work is cut into tiles and parts."""

COMPILED: dict[str, Any] = {
    "CACHED": 600, "SHARED_CYCLES": 1, "TOGETHER_CYCLES": 1, "BLOCK": 48, "LONGEST": 1e4,
}  # fmt: skip
"""The same of compiled kernels, which are then compiled under a name of their own."""


@contextmanager
def lowered() -> Generator[None]:
    """Have each of these numbers small, wherever a module of the plan has it, and Winograd run what it can."""
    for found in walk_packages(plan.__path__, "irload.plan."):
        import_module(found.name)  # what is imported later would keep its own numbers
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if not name.startswith("irload.plan"):
                continue
            compiled = name.startswith("irload.plan.backends.llvm")
            for constant, value in (COMPILED if compiled else SMALL).items():
                if constant in vars(module):
                    stack.enter_context(patch.object(module, constant, value))
        stack.enter_context(patch.object(winograd, "suits", winograd.can))
        stamp = f"lowered thresholds, {library._generator()}"  # which kernels are written by is part of their key
        stack.enter_context(patch.object(library, "_generator", lambda: stamp))
        yield


@contextmanager
def all_in_bf16() -> Generator[None]:
    """Have products, attention and recurrent networks computed in bf16 however little there is to multiply."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(bf16_selection, "_is_faster", lambda *_: True))
        stack.enter_context(patch.object(attention, "pays_in_tiles", lambda *_: True))
        for least in ("LEAST_WIDTH", "LEAST_PRODUCTS"):
            stack.enter_context(patch.object(bf16_recurrent_selection, least, 0))
        yield
