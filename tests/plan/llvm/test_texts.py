"""Compiled kernels for texts (splits, replacements, ids by every model) give the results of the Python operations."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import irload
from irload.core.tensor import Array
from irload.ops.registry import resolve
from irload.ops.text.merging import Merges
from irload.ops.text.ragged import joined
from irload.ops.text.regexes import RegexSplit
from irload.ops.text.tools import PYTHON, SubwordModel, TextOp
from irload.ops.text.unigram import Segmentation
from irload.ops.text.wordpiece import Subwords
from irload.plan.backends.llvm import available
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.kernels.text import tables
from irload.plan.backends.llvm.kernels.text.tables import compiled_table
from irload.plan.backends.llvm.kernels.text.tools import CompiledTools
from irload.plan.backends.llvm.target import Target
from tests.harness.case import GENERATORS
from tests.harness.tiers import tiered
from tests.harness.verify import load
from tests.ops.families import load_families
from tests.ops.text.cases_texts import PATTERNS
from tests.ops.text.material import broken, text
from tests.plan.llvm.harness import TARGETS, guarded

load_families()
ROWS = [row for row in sorted(GENERATORS) if issubclass(resolve(*row)[0], TextOp)]
LETTERS = ("a", "b", "ab", "ba", "▁", "é", "日", " ")


def words(rng: random.Random, count: int, longest: int = 12) -> list[bytes]:
    return ["".join(rng.choices(LETTERS, k=rng.randrange(longest))).encode() for _ in range(count)]


def merging(rng: random.Random, suffix: bytes = b"") -> Merges:
    tokens = dict.fromkeys(s.encode() for s in ("a", "b", "▁", "é", " ", *(["日"] if rng.random() < 0.5 else [])))
    pairs: dict[tuple[bytes, bytes], None] = {}
    for _ in range(25):
        left, right = rng.choice(list(tokens)), rng.choice(list(tokens))
        if len(left + right) < 9 and not (right.startswith("▁".encode()) and suffix == b""):
            pairs[left, right] = None
            tokens[left + right] = None
    fallback = rng.random() < 0.5
    names = [b"<unk>", *(b"<0x%02X>" % k for k in "日".encode()[1:])] if fallback else []
    vocabulary = {token: id for id, token in enumerate([*tokens, *names])}
    return Merges(
        vocabulary,
        *map(list, zip(*pairs, strict=True)),
        unknown=rng.choice([b"", b"<unk>"]),
        suffix=suffix,
        byte_fallback=fallback,
    )


def segmenting(rng: random.Random) -> Segmentation:
    tokens = list(dict.fromkeys([b"<unk>", *words(rng, 30, 4)]))
    scores = [float(np.float32(-rng.choice((rng.randrange(1, 5), rng.uniform(1, 9))))) for _ in tokens]
    return Segmentation(tokens, scores, 0)


def subwords(rng: random.Random) -> Subwords:
    first, others = ({token: k for k, token in enumerate(words(rng, 20, 4))} for _ in range(2))
    return Subwords(first, others, 99, rng.choice((5, 100)))


MODELS: list[Callable[[random.Random], SubwordModel]] = [
    merging,
    lambda rng: merging(rng, b"b"),
    segmenting,
    subwords,
]


def ids(target: Target, model: SubwordModel, pieces: list[bytes]) -> list[list[int]]:
    table = compiled_table(target, model)
    assert table is not None
    begins, ends, chars = joined(pieces, (len(pieces),))
    memory = guarded(chars.shape, np.uint8)
    memory[:] = chars
    lists: list[list[int]] = []
    for _ in range(2):  # the second run reads short words from the cache
        flat, lengths = table.ids(begins, ends, memory)
        lists = [part.tolist() for part in np.split(flat, np.cumsum(lengths)[:-1])] if pieces else []
    return lists


@pytest.mark.parametrize("row", ROWS, ids="-".join)
def test_operations_give_equal_results(row: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(available, "host_target", lambda: TARGETS[0])
    for seed in range(tiered(10, 200)):
        rng = np.random.default_rng(seed)
        for generate in GENERATORS[row]:
            case = generate(rng)
            model, inputs = load(case), [i.value for i in case.inputs if not i.constant]
            plain, compiled = (
                irload.compile_model(model, optimize=optimize, jit=optimize or None)(inputs).values()
                for optimize in (False, True)
            )
            for expected, actual in zip(plain, compiled, strict=True):
                assert np.array_equal(actual, expected), case


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target.name)
@pytest.mark.parametrize("seed", range(60))
def test_models_give_equal_ids(seed: int, target: Target) -> None:
    rng = random.Random(seed)
    model = MODELS[seed % len(MODELS)](rng)
    pieces = [b"", *words(rng, 40), *words(rng, 3, 120), *words(rng, 20), "日".encode()[:2], b"\xff\xfe"]
    assert ids(target, model, pieces) == [list(model.tokens(piece)) for piece in pieces]


def test_words_beyond_the_capacity_of_the_table(monkeypatch: pytest.MonkeyPatch) -> None:
    for most, nbytes, longest in ((3, 1 << 20, 2048), (100, 40, 2048), (100, 1 << 20, 4)):
        monkeypatch.setattr(tables, "REMEMBERED", most)
        monkeypatch.setattr(tables, "POOL", max(nbytes, 130))
        monkeypatch.setattr(tables, "SHORT", 8)
        monkeypatch.setattr(tables, "LONGEST_MERGED", longest)
        rng = random.Random(most)
        model, pieces = merging(rng), words(rng, 100, 20)
        assert ids(TARGETS[0], model, pieces) == [list(model.tokens(piece)) for piece in pieces]


def test_texts_are_divided_at_separators() -> None:
    block = "▁".encode()
    vocabulary = {token: k for k, token in enumerate([block, b"a", block + b"a", block * 2])}
    model = Merges(vocabulary, [block, block], [b"a", block], unknown=b"", suffix=b"", byte_fallback=False)
    assert model.separator == block
    pieces = ["", "▁a▁a", "a", "▁▁▁a▁▁", "aa▁aa▁"]
    assert ids(TARGETS[0], model, [p.encode() for p in pieces]) == [list(model.tokens(p.encode())) for p in pieces]
    across = {**vocabulary, b"a" + block: 4}
    assert not Merges(across, [b"a"], [block], unknown=b"", suffix=b"", byte_fallback=False).separator


def rows(parts: tuple[Array, ...]) -> list[list[int]]:
    return [a.tolist() for a in parts]


@pytest.mark.parametrize("behaviour", ["isolate", "remove", "contiguous", "mergedwithnext", "mergedwithprevious"])
@pytest.mark.parametrize("seed", range(60))
def test_splits_are_equal(seed: int, behaviour: str) -> None:
    rng = np.random.default_rng(seed)
    pieces = [(broken if rng.random() < 0.3 else text)(rng) for _ in range(6)]
    begins, ends, chars = joined(pieces, (6,))
    memory = guarded(chars.shape, np.uint8)
    memory[:] = chars
    skips = None if seed % 2 else rng.integers(0, 2, 6).astype(bool)
    invert = seed % 5 == 0
    for source in PATTERNS:
        inputs = np.array([0, 2], np.int32), np.array([2, 6], np.int32), begins, ends
        actual, expected = (
            tools.splitter(source, behaviour, invert, -1).split(*inputs, data, skips=skips, unsplit=frozenset())
            for tools, data in ((CompiledTools(TARGETS[0]), memory), (PYTHON, chars))
        )
        assert rows(actual) == rows(expected), source


@pytest.mark.parametrize("seed", range(60))
def test_replacements_are_equal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pieces = [(broken if rng.random() < 0.3 else text)(rng) for _ in range(6)]
    begins, ends, chars = joined(pieces, (2, 3))
    skips = None if seed % 2 else rng.integers(0, 2, 6).astype(bool)
    for source in (*PATTERNS, rb"([\p{L}])", rb" {2,}", rb"(\p{N})|x"):
        for new in (b"", b" ", "▁".encode(), rb" $1 ", rb"$0", rb"\1x", b"longer", b"$", b"$2"):
            actual, expected = (
                tools.replaced(source, new, True, begins, ends, chars, skips)
                for tools in (CompiledTools(TARGETS[0]), PYTHON)
            )
            assert actual[0].shape == (2, 3)
            assert strings(actual) == strings(expected), (source, new)


def strings(parts: tuple[Array, Array, Array]) -> list[bytes]:
    data = parts[2].tobytes()
    return [data[b:e] for b, e in zip(parts[0].ravel().tolist(), parts[1].ravel().tolist(), strict=True)]


def test_the_back_end_replaces_the_tools() -> None:
    op = RegexSplit()
    own = LlvmBackend(TARGETS[0]).operation(op)
    assert isinstance(own, RegexSplit)
    assert isinstance(own.tools, CompiledTools)
    assert op.tools is PYTHON


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this platform")
def test_a_forked_process_tokenizes() -> None:
    rng = random.Random(1)
    model, pieces = merging(rng), words(rng, 50)
    table = compiled_table(TARGETS[0], model)
    assert table is not None
    texts = joined(pieces, (50,))
    expected = table.ids(*texts)[0].tolist()
    child = os.fork()
    if not child:
        os._exit(table.ids(*texts)[0].tolist() != expected)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
