"""Files with several unrelated faults: each in a separate block, all in one net."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.checks.bases import BASES, Block, net
from tests.checks.file_rows import FILE_ROWS
from tests.checks.graph_rows import GRAPH_ROWS
from tests.checks.table import Row

COMBINED = [r for r in (*GRAPH_ROWS, *FILE_ROWS) if not r.alone]


def faulty(row: Row) -> Block:
    """The block of a row with its fault."""
    block = BASES[row.base].edited(*row.bad)
    return replace(block, blob=row.weights(block.blob) or b"")


def draw(seed: int) -> tuple[list[Row], str, bytes]:
    """Two to five rows of different rules, and the (text, weights) of a file with their faults and valid parts."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(COMBINED))
    chosen: dict[str, Row] = {}
    for k in order:
        chosen.setdefault(COMBINED[k].code, COMBINED[k])
    rows = list(chosen.values())[: int(rng.integers(2, 6))]
    text, blob = net(*(faulty(r) for r in rows), BASES["conv"])
    return rows, text, blob
