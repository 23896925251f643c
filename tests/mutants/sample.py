"""A seeded sample of the mutants that cosmic-ray's operators create from given files."""

from __future__ import annotations

import re
import warnings
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from random import Random
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.plugins import get_operator, operator_names

from tests.mutants.mutant import Mutant, Source

NODES = {
    "ReplaceBinaryOperator": {"binary"},
    "ReplaceComparisonOperator": {"comparison"},
    "ReplaceUnaryOperator": {"factor", "not_test"},
    "NumberReplacer": {"number"},
    "ExceptionReplacer": {"except_clause"},
    "RemoveDecorator": {"decorator"},
    "ZeroIterationForLoop": {"for_stmt"},
    "AddNot": {"if_stmt", "while_stmt", "assert_stmt", "test"},
}
"""The nodes that an operator examines, keywords by default: testing 150 operators on every node takes a minute."""

BINARY = frozenset(["+", "-", "*", "/", "//", "%", "**", ">>", "<<", "|", "&", "^"])

SAME = re.compile(r"Comparison.*_(Eq_Is|NotEq_IsNot|Is_Eq|IsNot_NotEq)$")
"""Identity instead of equality and the reverse: which objects are identical is decided by Python, not by irload."""

Spot = tuple[str, int, int, str]
"""File, line, column and kind of change."""


def sample(root: Path, files: Sequence[Path], count: int, seed: int) -> list[Mutant]:
    """`count` mutants of the files in random order; deterministic for the same seed and files.

    A spot (a position and a kind of change, such as an operator that may become any other) is drawn first, then one of
    its mutants. Otherwise half of a sample would be arithmetic operators, each of which has eleven mutants.
    """
    sources = {str(f.relative_to(root)): Source(f.read_text(encoding="utf-8")) for f in sorted(files)}
    spots: dict[Spot, list[tuple[str, int]]] = defaultdict(list)
    for file, source in sources.items():
        for operator, occurrence, (line, column) in _places(source):
            spots[file, line, column, _kind(operator)].append((operator, occurrence))
    random = Random(seed)
    mutants = (
        _mutant(sources[s[0]], s, *random.choice(sorted(spots[s]))) for s in random.sample(sorted(spots), len(spots))
    )
    return list(islice((m for m in mutants if _compiles(m.after)), count))


def _places(source: Source) -> Iterator[tuple[str, int, tuple[int, int]]]:
    """Each operator's name, the number of its change as cosmic-ray counts them, and its position."""
    nodes: dict[str, list[tuple[int, Any]]] = defaultdict(list)
    for k, node in enumerate(ast_nodes(get_ast(source.text))):
        nodes["binary" if node.type == "operator" and node.value in BINARY else node.type].append((k, node))
    for name in operator_names():
        operator: Any = get_operator(name)
        if operator.arguments() or SAME.search(name):
            continue
        looked_at = sorted((k, n) for kind in NODES.get(_kind(name), {"keyword"}) for k, n in nodes[kind])
        positions = (begin for _, n in looked_at for begin, _ in operator().mutation_positions(n))
        for occurrence, begin in enumerate(positions):
            if not source.excluded(begin):
                yield name, occurrence, begin


def _compiles(text: str) -> bool:
    """False for invalid Python, `def f(a, <<, b)`, and code for which Python warns, `x is not (1,)`."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        try:
            compile(text, "", "exec")
        except (SyntaxError, SyntaxWarning):
            return False
    return True


def _kind(operator: str) -> str:
    return operator.split("/")[-1].split("_")[0]


def _mutant(source: Source, spot: Spot, operator: str, occurrence: int) -> Mutant:
    after = mutate_code(source.text, get_operator(operator)(), occurrence)
    assert after is not None
    return Mutant(spot[0], spot[1], operator.split("/")[-1], source.text, after)
