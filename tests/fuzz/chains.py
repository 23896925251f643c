"""Runs random chains of quantized layers: `python -m tests.fuzz.chains [N] [--seed S]`.

Each chain runs in integers and by `compute`; both results must be equal. Exits 1 if a chain differs.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from unittest.mock import patch

from irload.options import Options
from irload.plan.backends.registry import compiled_backend

CHAINS = 1000
"""The number of chains of each seed."""


def main(arguments: Sequence[str]) -> int:
    """Run the chains and print a report. Returns 1 if one of them differs, else 0."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.chains", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("count", nargs="?", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    if compiled_backend(Options()) is None:
        print("chains of quantized layers require compiled kernels: pip install 'irload[jit]'", file=sys.stderr)
        return 0
    from irload.plan.backends.llvm.kernels import quantized
    from tests.plan.llvm.quantized_chain import difference

    results: list[str] = []
    with patch.object(quantized, "fits_winograd", lambda *_: False):
        for k in range(options.count):
            differs = difference(CHAINS * options.seed + k)
            if differs is not None:
                results.append(differs)
                print(differs)
    print(f"{options.count} chains of quantized layers, {len(results)} differ")
    return int(bool(results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
