"""Random cases of tokenizers, vocabularies and ragged tensors."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.harness.case import Case, Input, Random, cases, const, param
from tests.harness.material import pick
from tests.ops.text.material import line, packed, ragged, ragged_texts, rows, text

LETTERS = [c.encode() for c in ("a", "b", "l", "o", " ", "é", "日", "▁", "x", "'")]


def piece(rng: Random) -> bytes:
    """A text of few different letters, so that it contains many tokens."""
    return b"".join(pick(rng, LETTERS) for _ in range(int(rng.integers(1, 9))))


def pieces(rng: Random) -> list[Input]:
    """A ragged tensor of texts. Unused bytes follow them, because the extension allocates one id per byte."""
    *offsets, chars = ragged(rng, [piece(rng) for _ in range(int(rng.integers(1, 6)))])
    return [*offsets, param(np.concatenate([chars.value, np.zeros(16, np.uint8)]), et.u8)]


def vocabulary(rng: Random, *, whole: bool) -> list[bytes]:
    """Distinct tokens: short texts, with `whole` including all letters."""
    tokens = [piece(rng)[: int(rng.integers(1, 5))] for _ in range(12)]
    return list(dict.fromkeys([*(LETTERS if whole else LETTERS[:5]), *tokens]))


@cases("WordpieceTokenizer", "extension")
def wordpiece(rng: Random, version: str) -> Case:
    tokens = [b"[UNK]", *vocabulary(rng, whole=False)]
    tokens += [b"##" + t for t in vocabulary(rng, whole=bool(rng.integers(2)))]
    inputs = [*pieces(rng), *packed(tokens, constant=True), const(0, et.i32)]
    return Case("WordpieceTokenizer", version, inputs, {"max_bytes_per_word": pick(rng, (5, 100))}, outputs=3)


@cases("TrieTokenizer", "extension")
def trie(rng: Random, version: str) -> Case:
    tokens = list(dict.fromkeys([*vocabulary(rng, whole=True), *(bytes([k]) for k in range(256))]))
    ids = const(rng.permutation(len(tokens)) + 5, et.i32)
    inputs = [*packed([piece(rng) for _ in range(3)]), *packed(tokens, constant=True), ids]
    starts = np.arange(3, dtype=np.int32)  # one row per string, as the extension infers
    return Case("TrieTokenizer", version, [param(starts, et.i32), param(starts + 1, et.i32), *inputs], outputs=3)


@cases("UnigramTokenizer", "extension")
def unigram(rng: Random, version: str) -> Case:
    tokens = [b"<unk>", *vocabulary(rng, whole=bool(rng.integers(2)))]
    scores = const(-pick(rng, (rng.integers(1, 5, len(tokens)), rng.uniform(1, 9, len(tokens)))), et.f32)
    return Case("UnigramTokenizer", version, [*pieces(rng), *packed(tokens, constant=True), scores], outputs=3)


@cases("BPETokenizer", "extension")
def bpe(rng: Random, version: str) -> Case:
    tokens = list(LETTERS)
    if rng.random() < 0.5:
        tokens += [b"<unk>", *(b"<0x%02X>" % k for k in "€z".encode())]
    merges: list[tuple[bytes, bytes]] = []
    for _ in range(14):
        left, right = pick(rng, tokens), pick(rng, tokens)
        if b"<" not in left + right and b" " not in left + right and (left, right) not in merges:
            merges.append((left, right))
            tokens = list(dict.fromkeys([*tokens, left + right]))
    halves = (
        [[b" ".join(m) for m in merges]] if rng.random() < 0.5 else [[m[0] for m in merges], [m[1] for m in merges]]
    )
    inputs = [*pieces(rng), *packed(tokens, constant=True)]
    for half in halves:
        inputs += packed(half, constant=True)
    if rng.random() < 0.5:
        inputs += [*packed([b"ll", b"$"], constant=True), const([700, 701], et.i32)]
    attributes = {
        "unk_token": pick(rng, ("", "<unk>")),
        "byte_fallback": bool(rng.integers(2)),
        "end_suffix": pick(rng, ("", "o")),
        "fuse_unk": bool(rng.integers(2)),
    }
    return Case("BPETokenizer", version, inputs, attributes, outputs=3)


@cases("VocabEncoder", "extension")
def encode(rng: Random, version: str) -> Case:
    element = pick(rng, (et.i32, et.i64))
    tokens = [b"a", b"b", "é".encode(), b""]
    inputs = [pick(rng, (*tokens, b"c")) for _ in range(int(rng.integers(1, 5)))]
    ids = const(rng.integers(0, 99, len(tokens)), element)
    return Case("VocabEncoder", version, [*packed(inputs), *packed(tokens, constant=True), ids, const(-1, element)])


@cases("VocabDecoder", "extension")
def decode(rng: Random, version: str) -> Case:
    tokens = [text(rng, longest=2) for _ in range(6)]
    ids = param(rng.integers(0, 8, (int(rng.integers(1, 4)), int(rng.integers(0, 5)))), et.i32)
    skipped = rng.integers(0, 6, int(rng.integers(1, 3)))
    inputs = [ids, *packed(tokens, constant=True)]
    if rng.random() < 0.5:
        return Case("VocabDecoder", version, inputs, {"skip_tokens": skipped.tolist()}, outputs=5)
    return Case("VocabDecoder", version, [*inputs, const(skipped, et.i32)], outputs=5)


@cases("FuzeRagged", "extension")
def fuze(rng: Random, version: str) -> Case:
    begins, ends, first, last, _ = ragged_texts(rng)
    keep = begins.value < first.value.size
    offsets = [param(begins.value[keep], et.i32), param(ends.value[keep], et.i32)]
    return Case("FuzeRagged", version, [*offsets, first, last], outputs=2)


@cases("CombineSegments", "extension")
def combine(rng: Random, version: str) -> Case:
    count = int(rng.integers(1, 4))
    single = [const(0, et.i32), const(pick(rng, (1, [1])), et.i32), const([7], et.i32)]
    parts = [rows(rng, et.i32, count) if k == 1 or rng.random() < 0.4 else single for k in range(3)]
    inputs = [i for part in parts for i in part]
    return Case(
        "CombineSegments", version, [*inputs, const(rng.integers(0, 3, 3), pick(rng, (et.i32, et.i64)))], outputs=6
    )


@cases("Truncate", "extension")
def truncate(rng: Random, version: str) -> Case:
    count = int(rng.integers(1, 4))
    parts = [i for _ in range(int(rng.integers(1, 3))) for i in rows(rng, et.i32, count)]
    side, mode = pick(rng, (b"left", b"right")), pick(rng, (b"only_first", b"only_second", b"longest_first"))
    inputs = [*parts, const(int(rng.integers(0, 9)), et.i32), line(side), line(mode)]
    return Case("Truncate", version, inputs, {"m_num_inputs": len(parts) // 3}, outputs=len(parts))


@cases("RaggedToDense", "extension")
def dense(rng: Random, version: str) -> Case:
    element = pick(rng, (et.i32, et.i64, et.f32))
    begins, ends, data = rows(rng, element)
    if rng.random() < 0.3:
        data = param(np.repeat(data.value[:, None], 2, 1), element)
    length = pick(rng, (const, param))(int(rng.integers(0, 6)), et.i32)
    inputs = [begins, ends, data, length, const(9, element)]
    if rng.random() < 0.4:
        inputs.append(param(bool(rng.integers(2)), et.boolean))
    return Case("RaggedToDense", version, inputs, {"pad_right": bool(rng.integers(2))}, outputs=2)


@cases("RaggedToSparse", "extension")
def sparse(rng: Random, version: str) -> Case:
    return Case("RaggedToSparse", version, rows(rng)[:2])


@cases("RaggedToRagged", "extension")
def row_ids(rng: Random, version: str) -> Case:
    count = int(rng.integers(1, 7))
    ids = np.sort(rng.integers(0, count, int(rng.integers(0, 8))))
    return Case("RaggedToRagged", version, [param(ids, et.i32), const(count, et.i32)], outputs=2)


@cases("RaggedTensorPack", "extension")
def ragged_pack(rng: Random, version: str) -> Case:
    return Case("RaggedTensorPack", version, rows(rng, pick(rng, (et.i32, et.f32))))
