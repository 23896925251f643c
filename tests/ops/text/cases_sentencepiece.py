"""Random cases of SentencePiece's models, one of which is trained on a few sentences."""

from __future__ import annotations

import io
from collections.abc import Iterator
from functools import cache

import numpy as np
import sentencepiece

from irload.core import element as et
from tests.harness.case import Case, Input, Random, cases, const, param
from tests.harness.material import pick
from tests.ops.text.material import broken, flags, packed, text

SENTENCES = (
    "Licensed under the Apache License, Version 2.0; you may not use this file except in compliance with the License.",
    "The quick brown fox jumps over the lazy dog, and the dog sleeps: it's 12345 o'clock.",
    "Tensors have an element type, a shape and strides. Operations infer the shapes of their outputs.",
    "日本語のテキスト 中文文本 Привет мир 👍 ½ ﬁ Å naïve café straße",
)


@cache
def model(kind: str) -> bytes:
    """A serialized model with byte tokens."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(SENTENCES * 8),
        model_writer=written,
        model_type=kind,
        vocab_size=400,
        byte_fallback=True,
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return written.getvalue()


@cache
def charsmap() -> bytes:
    """The compiled map of the model's normalization (nmt_nfkc): field 2 of field 3 of the model."""
    spec = next(value for field, value in fields(model("unigram")) if field == 3)
    return next(value for field, value in fields(spec) if field == 2)


def fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protocol buffer that hold bytes."""
    stream = io.BytesIO(message)
    while (key := varint(stream)) is not None:
        kind = key & 7
        if kind == 2:
            yield key >> 3, stream.read(varint(stream) or 0)
        elif kind == 0:
            varint(stream)
        else:
            stream.read(8 if kind == 1 else 4)


def varint(stream: io.BytesIO) -> int | None:
    """The next variable-length integer, None at the end."""
    value = shift = 0
    while byte := stream.read(1):
        value |= (byte[0] & 127) << shift
        shift += 7
        if byte[0] < 128:
            return value
    return None


def serialized(rng: Random) -> Input:
    return const(np.frombuffer(model(pick(rng, ("unigram", "bpe"))), np.uint8), et.u8)


@cases("SentencepieceTokenizer", "extension")
def tokenize(rng: Random, version: str) -> Case:
    pieces = [pick(rng, (text, broken))(rng) for _ in range(int(rng.integers(1, 4)))]
    if rng.random() < 0.5:
        strings = [param(np.array([p.decode("utf-8", "replace") for p in pieces], object), et.string)]
    else:
        strings = packed(pieces)
    special: list[Input] = []
    if rng.random() < 0.5:
        special = [*packed([b"[MASK]", b"<s>", b"the"], constant=True), const([900, 901, 902], et.i32)]
    attributes = {
        "nbest_size": pick(rng, (0, 1)),
        "alpha": 0.0,
        **{name: bool(rng.integers(2)) for name in ("add_bos", "add_eos", "reverse")},
    }
    return Case("SentencepieceTokenizer", version, [serialized(rng), *strings, *special], attributes, outputs=3)


def ids(rng: Random) -> list[Input]:
    """A model, and ids, some of which are beyond its vocabulary."""
    return [serialized(rng), param(rng.integers(0, 420, (int(rng.integers(1, 4)), int(rng.integers(0, 9)))), et.i32)]


@cases("SentencepieceDetokenizer", "extension")
def detokenize(rng: Random, version: str) -> Case:
    return Case("SentencepieceDetokenizer", version, ids(rng), outputs=3)


@cases("SentencepieceStreamDetokenizer", "extension")
def stream(rng: Random, version: str) -> Case:
    return Case("SentencepieceStreamDetokenizer", version, ids(rng), outputs=3)


@cases("CharsMapNormalization", "extension")
def compiled(rng: Random, version: str) -> Case:
    pieces = [pick(rng, (text, broken))(rng) for _ in range(3)]
    table = const(np.frombuffer(charsmap(), np.uint8), et.u8)
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces")
    attributes = {name: bool(rng.integers(2)) for name in names}
    if rng.random() < 0.5:
        return Case("CharsMapNormalization", version, [*packed(pieces), table], attributes, outputs=3)
    inputs = [*packed(pieces), flags(rng, len(pieces)), table]
    return Case("CharsMapNormalization", version, inputs, attributes, outputs=4)
