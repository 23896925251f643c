"""Graphs of very many layers: nothing is recursive, nothing quadratic. Each runs in a process of bounded means."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.ir import Graph, save
from tests.hostile import chains
from tests.hostile.confined import confined

MANY, SOME = 100_000, 10_000
"""Layers: of the chain that the acceptance names, and of the other kinds, at which quadratic work shows as well."""

RUN = """
import sys, numpy as np, irload
model = irload.read_model(sys.argv[1])
ones = [np.ones(p.shape, np.float32) for p in model.inputs]
for optimize in True, False:
    (*_, result) = irload.compile_model(model, threads=2, optimize=optimize)(ones).values()
    print(result.ravel()[0], len(model.nodes))
"""
"""Reads, infers and runs, by the fast plan and plainly; prints the first element of the last result each time."""

LINKS = {
    "add": (SOME // 2, 1 + SOME // 2),
    "matmul": (SOME, 1),
    "convolution": (SOME, 1),
    "tail": (SOME, 1),
    "reshape": (SOME // 2, 1),
    "concat": (SOME, 1),
    "shapes": (SOME, 1 + SOME),
    "constants": (SOME, 2 + SOME),
    "consumers": (SOME, 2.7182817),
    "inputs": (SOME, 1),
    "weights": (SOME, SOME // 100 - 1),
    "doubling": (60, 2.0**60),
}
"""Of each kind of graph how many links, and what the first element of an input of ones becomes."""


def written(folder: Path, graph: Graph) -> Path:
    """The path of the graph's file."""
    save(graph, folder, "hostile")
    return folder / "model.xml"


def run(path: Path) -> list[tuple[float, int]]:
    """What RUN prints for a file, in a process of its own."""
    done = confined(["-c", RUN, path])
    assert done.returncode == 0, done.stderr[-2000:]
    lines = [line.split() for line in done.stdout.splitlines()]
    return [(float(first), int(layers)) for first, layers in lines]


def test_a_chain_of_100_000_layers_is_read_inferred_and_run_within_2_gib(tmp_path: Path) -> None:
    assert run(written(tmp_path, chains.relu(MANY - 2))) == [(1, MANY)] * 2


@pytest.mark.parametrize("kind", LINKS)
def test_chains_and_wide_graphs_run(kind: str, tmp_path: Path) -> None:
    links, expected = LINKS[kind]
    for first, _ in run(written(tmp_path, chains.KINDS[kind](links))):
        assert first == pytest.approx(expected)
