"""Lowered thresholds, so that small programs run the kernels for large inputs."""

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
from irload.plan.backends.llvm.kernels import attention, precision, recurrent_selection
from irload.plan.backends.numpy.kernels import winograd

SMALL: dict[str, Any] = {
    "ELEMENTS": 16, "PRODUCTS": 64, "TAPS": 32, "TILE": 48, "SHARED_TILE": 96, "CONV_TILE": 200,
    "CONV3D_TILE": 200, "POSITIONS": 4, "BLOCK": 96,
    "PANEL": 3000, "TILES": 2, "TRANSFORMED": 64, "RESIDENT": 64, "BUFFERED_ELEMENTS": 256, "WORK": 2000,
    "FEW_CHANNELS": 4, "MANY": 4,
    "SOFTMAX_COLUMNS": 2, "SOFTMAX_BLOCK": 2, "BAND": 4, "LANES": 4, "HEIGHTS": (8, 4), "WIDTHS": (16, 8, 4),
    "WIDEST": 32, "LONG_STEP": 1e4, "LARGEST_TILE": 500,
}  # fmt: skip
"""Thresholds by which NumPy kernels are selected and work is split into tiles and parts."""

COMPILED: dict[str, Any] = {
    "SCORES": 600, "TILE_SCORES": 600, "TILE_DATA": 600, "SHARED_CYCLES": 1, "TOGETHER_CYCLES": 1, "SAMPLES": 48,
    "LONGEST": 1e4,
    "LONG_STEP": 2e4, "LONGEST_PART": 3e3, "LONG_SUM": 24, "SUM_PART": 16,
}  # fmt: skip
"""The same for compiled kernels. The keys of these kernels change, so normal plans do not use them from the cache."""


@contextmanager
def lowered_thresholds() -> Generator[None]:
    """Set each of these thresholds to a small number in every module of the plan, and use Winograd where possible."""
    for entry in walk_packages(plan.__path__, "irload.plan."):
        import_module(entry.name)  # a module imported later would read the original numbers
    with ExitStack() as stack:
        for name, module in list(sys.modules.items()):
            if not name.startswith("irload.plan"):
                continue
            compiled = name.startswith("irload.plan.backends.llvm")
            for constant, value in (COMPILED if compiled else SMALL).items():
                if constant in vars(module):
                    stack.enter_context(patch.object(module, constant, value))
        stack.enter_context(patch.object(winograd, "suits", winograd.can))
        stamp = f"lowered thresholds, {library._generator()}"  # the thresholds are part of the key of a kernel
        stack.enter_context(patch.object(library, "_generator", lambda: stamp))
        yield


@contextmanager
def all_in_bf16() -> Generator[None]:
    """Compute products, attention and recurrent networks in bf16 at any size."""
    with ExitStack() as stack:
        stack.enter_context(patch.object(precision, "_is_faster", lambda *_: True))
        stack.enter_context(patch.object(attention, "pays_in_tiles", lambda *_: True))
        for least in ("LEAST_STATE", "LEAST_RECURRENT"):
            stack.enter_context(patch.object(recurrent_selection, least, 0))
        yield
