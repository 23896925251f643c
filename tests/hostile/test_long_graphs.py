"""Graphs of 100,000 layers: nothing is recursive, nothing quadratic. Each runs in a process with 2 GiB and 30 s."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.ir import Graph, save
from tests.hostile import chains
from tests.hostile.confined import confined

LAYERS = 100_000

RUN = """
import sys, numpy as np, irload
model = irload.read_model(sys.argv[1])
ones = [np.ones(p.shape, np.float32) for p in model.inputs]
optimize = sys.argv[2] == "fast"
(*_, result) = irload.compile_model(model, threads=2, optimize=optimize)(ones).values()
print(result.ravel()[:4].tolist(), len(model.nodes))
"""

EXPECTED = {"add": 1 + (LAYERS - 2) // 2, "shapes": LAYERS - 7, "constants": LAYERS - 2}
"""What the first element of ones has become, where it is no 1."""


def written(folder: Path, graph: Graph) -> Path:
    save(graph, folder, "hostile")
    return folder / "model.xml"


def run(path: Path, how: str) -> str:
    done = confined(["-c", RUN, path, how])
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


@pytest.fixture(scope="module")
def relus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A chain of 100,000 layers: a Parameter, ReLUs, a Result."""
    return written(tmp_path_factory.mktemp("relus"), chains.relu(LAYERS - 2))


@pytest.mark.parametrize("kind", sorted(chains.CHAINS.keys() - {"relu"}))
def test_a_chain_of_100_000_layers_runs(kind: str, tmp_path: Path) -> None:
    layers_a_link = 2 if kind in ("add", "reshape") else 1
    path = written(tmp_path, chains.CHAINS[kind]((LAYERS - 2) // layers_a_link))
    first = run(path, "fast").removeprefix("[").split(",")[0]
    assert float(first) == pytest.approx(EXPECTED.get(kind, 1), rel=1e-3)
