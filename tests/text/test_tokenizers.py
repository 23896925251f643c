"""Tokenizers of every kind against the compiled extension: ids, masks and decoded texts."""

from __future__ import annotations

import random
from functools import cache
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

import irload
from irload.errors import InputInvalid, ReadError
from irload.text.row_decoder import row_decoder
from tests.harness import runtime
from tests.harness.tiers import NIGHTLY, tiered

DATA = Path(__file__).parent / "data"
KINDS = sorted(p.name for p in DATA.iterdir())
PIECES = (
    *("the model", " reads", "a file", " ", "  ", "\n", "\t\n ", "It's", "WE'LL", "x1y22", "3.14", "_", "<s>", "</s>"),
    *("<|end|>", "[MASK]", "##ing", "<0x41>", "👍🏽", "👨‍👩‍👧", "🇩🇪", "１２", "ﬁ", "Å", "e\u0301", "ậ", "ẞ", "İ", "ΑΣ"),
    *(
        "가",
        "\u1100\u1161",
        "日本",
        "\u200b",
        "\u180e",
        "\u0085",
        "\u2028",
        "\u00a0",
        "½",
        "Ⅷ",
        "'ſ",
        "▁",
        "\U0002070e",
    ),
)


def texts(seed: int, count: int) -> list[str]:
    """Texts of words, marks, controls, and characters of every plane; runs of one character."""
    rng = random.Random(seed)
    decoded: list[str] = []
    for _ in range(count):
        kind = rng.random()
        if kind < 0.1:
            decoded.append(rng.choice(PIECES) * rng.randrange(1, 60))
        elif kind < 0.3:
            points = (rng.choice((rng.randrange(1, 0x250), rng.randrange(0x250, 0x110000))) for _ in range(20))
            decoded.append("".join(chr(p) for p in points if not 0xD800 <= p < 0xE000))
        else:
            decoded.append("".join(rng.choice(PIECES) for _ in range(rng.randrange(0, 12))))
    return decoded


@cache
def theirs(kind: str, name: str) -> ov.CompiledModel:
    return runtime.core().compile_model(DATA / kind / f"openvino_{name}.xml", "CPU")


@pytest.mark.one_in(2)
@pytest.mark.parametrize("kind", KINDS)
def test_ids_and_texts_equal_those_of_the_extension(kind: str) -> None:
    ours = irload.Tokenizer(DATA / kind)
    encode, decode = theirs(kind, "tokenizer"), theirs(kind, "detokenizer")
    for seed in range(50 if NIGHTLY else 4):
        batch = texts(seed, 25)
        expected = encode(ov.Tensor(batch))
        ids = ours.encode(batch)
        assert np.array_equal(ids["input_ids"], expected["input_ids"])
        assert np.array_equal(ids["attention_mask"], expected["attention_mask"])
        assert ours.decode(ids["input_ids"]) == decode(expected["input_ids"])[0].tolist()


@pytest.mark.parametrize("kind", KINDS)
def test_one_text_has_no_padding(kind: str) -> None:
    tokenizer = irload.Tokenizer(DATA / kind)
    short, long = tokenizer.encode("model"), tokenizer.encode("the model reads a file")
    assert tokenizer.encode_each(["model", "the model reads a file"]) == [short, long]
    assert tokenizer.decode(long).strip() == "the model reads a file"
    assert tokenizer.decode([short, long])[1] == tokenizer.decode(long)


def test_the_same_tokenizer_serves_batches_of_any_size() -> None:
    tokenizer = irload.Tokenizer(DATA / "llama3")
    assert [tokenizer.encode(["a"] * n)["input_ids"].shape[0] for n in (3, 1, 2)] == [3, 1, 2]
    assert tokenizer.encode("") == []


def test_invalid_bytes_are_kept_by_byte_level_tokenizers() -> None:
    text = b"a\xff\xfeb".decode("utf-8", "surrogateescape")
    assert irload.Tokenizer(DATA / "llama3").decode(irload.Tokenizer(DATA / "llama3").encode(text)) == "a\ufffd\ufffdb"


@pytest.mark.parametrize("kind", ["gpt2", "llama3"])
def test_bytes_that_are_not_utf8_decode_as_by_the_extension(kind: str) -> None:
    ours, decode = irload.Tokenizer(DATA / kind), theirs(kind, "detokenizer")
    rng = random.Random(kind)
    surrogate, beyond = b"\xed\xa4\xb9", b"\xf4\xa6\x9d\x9e"
    for case in range(tiered(40, 2000)):
        parts = (surrogate, beyond, b"\xe6\x97", b"a", "é".encode(), bytes([rng.randrange(128, 256)]))
        text = b"".join(rng.choice(parts) for _ in range(8)) if case else surrogate
        ids = ours.encode(text.decode("utf-8", "surrogateescape"))
        decoded = ours.decode(ids)
        assert decoded == decode(np.array([ids]))[0].item()
        assert decoded == ours.decode(np.array([ids]))[0]
        decoded.encode()


def test_a_text_of_a_megabyte() -> None:
    tokenizer = irload.Tokenizer(DATA / "gpt2")
    text = "model reads files. " * (1_000_000 // 19)
    assert tokenizer.decode(tokenizer.encode(text)) == text


def test_errors(tmp_path: Path) -> None:
    with pytest.raises(ReadError, match="none: no such folder"):
        irload.Tokenizer(tmp_path / "none")
    (tmp_path / "file").touch()
    with pytest.raises(ReadError, match="file: is a file; a text model is a folder"):
        irload.Tokenizer(tmp_path / "file")
    with pytest.raises(ReadError, match=r"no openvino_tokenizer\.xml"):
        irload.Tokenizer(tmp_path).encode("a")
    with pytest.raises(InputInvalid, match="integers"):
        irload.Tokenizer(DATA / "gpt2").decode(np.array([[0.5]]))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_decode_as_by_the_model(kind: str) -> None:
    fast, plain = irload.Tokenizer(DATA / kind), irload.Tokenizer(DATA / kind, optimize=False)
    rng = random.Random(kind)
    rows = [[rng.randrange(-2, 530) for _ in range(rng.randrange(20))] for _ in range(tiered(20, 400))]
    rows += [fast.encode(text) for text in texts(3, 10)]
    assert [fast.decode(row) for row in rows] == plain.decode(rows)
    assert fast.decode([1 << 40, 5]) == plain.decode([1 << 40, 5])


def test_other_detokenizers_are_left_to_the_model() -> None:
    net = irload.read_model(DATA / "llama3" / "openvino_tokenizer.xml")
    assert row_decoder(net) is None
    assert row_decoder(irload.read_model(DATA / "llama3" / "openvino_detokenizer.xml")) is not None
