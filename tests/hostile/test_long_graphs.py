"""Graphs of very many layers: no recursion and no quadratic work. Each runs in a process with limits."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irload
from models.ir import save
from tests.harness.growth import FACTOR, LINEAR, calls
from tests.harness.tiers import tiered
from tests.hostile import chains
from tests.hostile.confined import confined

MANY, SOME = tiered((5_000, 2_000), (100_000, 10_000))
"""Layers of the long chain and of the other kinds; quadratic work shows in the short ones as well."""

RUN = """
import sys, numpy as np, irload
from tests.harness.growth import FACTOR, growth

def prepare(links):
    shown = []
    def task():
        model = irload.read_model(f"{sys.argv[1]}/{links}/model.xml")
        ones = [np.ones(p.shape, np.float32) for p in model.inputs]
        for optimize in True, False:
            (*_, result) = irload.compile_model(model, threads=2, optimize=optimize)(ones).values()
            shown.append((result.ravel()[0], len(model.nodes)))
    results[links] = shown
    return task

results = {}
links = int(sys.argv[2])
if len(sys.argv) > 3:
    print(growth(prepare, links))
else:
    prepare(links)()
    print(0)
for first, count in results[links][:2]:
    print(first, count)
"""
"""Reads, infers and runs, by the plan and plainly.

Prints how the work grows with the number of links, then the first element of the last result and the number of layers,
for plan and plain execution.
"""

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
"""For each kind of graph: the number of links, and the expected first element for an input of ones."""


def run(folder: Path, kind: str, links: int, *, compared: bool = True) -> tuple[float, list[tuple[float, int]]]:
    """The output of RUN for a chain, in a separate process; `compared` with a short one of the same kind."""
    for count in {links, links // FACTOR} if compared else {links}:
        save(chains.KINDS[kind](count), folder / str(count), "hostile")
    done = confined(["-c", RUN, folder, links, *(["compared"] if compared else [])])
    assert done.returncode == 0, done.stderr[-2000:]
    grown, *lines = done.stdout.splitlines()
    return float(grown), [(float(first), int(layers)) for first, layers in map(str.split, lines)]


def test_a_long_chain_is_read_inferred_and_run_within_2_gib(tmp_path: Path) -> None:
    grown, output = run(tmp_path, "relu", MANY - 2)
    assert output == [(1, MANY)] * 2
    assert grown < LINEAR


@pytest.mark.one_in(6)
@pytest.mark.parametrize("kind", LINKS)
def test_chains_and_wide_graphs_run(kind: str, tmp_path: Path) -> None:
    links, expected = LINKS[kind]
    grown, output = run(tmp_path, kind, links, compared=links > FACTOR**2)
    for first, _ in output:
        assert first == pytest.approx(expected)
    assert grown < LINEAR, f"{FACTOR} times as many links take {FACTOR * grown:.0f} times as long"


@pytest.mark.one_in(4)
@pytest.mark.parametrize("kind", [kind for kind, (links, _) in LINKS.items() if links > FACTOR**2])
def test_calls_grow_with_the_length(kind: str, tmp_path: Path) -> None:
    """Twice as many links cause twice as many calls. Counts of calls show quadratic work even in short chains."""

    def work(links: int) -> int:
        save(chains.KINDS[kind](links), tmp_path / str(links), "hostile")

        def task() -> None:
            model = irload.read_model(tmp_path / str(links) / "model.xml")
            ones = [np.ones(p.shape, np.float32) for p in model.inputs]
            for optimize in True, False:
                irload.compile_model(model, threads=1, optimize=optimize)(ones)

        task()  # the first run imports
        return calls(task)

    assert work(200) / work(100) < 2.2
