"""Random cases of operations on strings and characters."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from tests.harness.case import Case, Random, cases, const, param
from tests.harness.material import pick, random_array, random_shape
from tests.ops.text.material import (
    broken,
    characters,
    flags,
    line,
    packed,
    ragged,
    ragged_texts,
    strings,
    text,
)

PATTERNS = (
    rb"\s+",
    rb" ",
    rb"[\p{L}]+",
    rb"\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*",
    rb"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    rb"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    rb"(\w)(\w*)",
    rb"^\s+|\s+$",
    rb"[a-e\x{e9}]|\bx",
    rb"(?<=l)l|o(?=r)",
    rb".",
    "▁".encode(),
    rb"(?:a|b)*+c",
)


@cases("StringTensorUnpack", "extension")
def unpack(rng: Random, version: str) -> Case:
    texts = np.array([text(rng).decode() for _ in range(3)], object)
    if rng.random() < 0.5:
        return Case("StringTensorUnpack", version, [param(texts[: rng.integers(1, 4)], et.string)], outputs=3)
    pieces = [t.encode() for t in texts]
    header = np.array([len(pieces), *np.cumsum([0, *map(len, pieces)])], "<i4").tobytes()
    return Case("StringTensorUnpack", version, [param(np.frombuffer(header + b"".join(pieces), np.uint8))], outputs=3)


@cases("StringTensorPack", "extension")
def pack(rng: Random, version: str) -> Case:
    return Case("StringTensorPack", version, strings(rng, rank=(0, 2)))


@cases("EqualStr", "extension")
def equal(rng: Random, version: str) -> Case:
    count = int(rng.integers(0, 4))
    first = [pick(rng, (b"", b"a", b"b")) for _ in range(count)]
    second = [pick(rng, (b"", b"a", b"b")) for _ in range(pick(rng, (1, count)))]
    sides = [packed(first), packed(second)]
    return Case("EqualStr", version, [i for side in (sides if rng.random() < 0.5 else sides[::-1]) for i in side])


@cases("StringToHashBucket", "extension")
def bucket(rng: Random, version: str) -> Case:
    pieces = [
        bytes(rng.integers(0, 256, pick(rng, (0, 1, 5, 12, 16, 17, 31, 40, 64, 65, 130, 300))).astype(np.uint8))
        for _ in range(3)
    ]
    buckets = {"num_buckets": pick(rng, (1, 7, 1000, (1 << 62) + 1))}
    return Case("StringToHashBucket", version, packed(pieces), buckets)


@cases("NumericToString", "openvino_tokenizers")
def numeric(rng: Random, version: str) -> Case:
    integers = (et.i64, et.i32, et.i16, et.i8, et.u64, et.u32, et.u16, et.u8)
    element = pick(rng, (*integers, et.f16, et.f32, et.f64, et.boolean))  # of bf16, OpenVINO writes empty texts
    span = pick(rng, ((-4, 4), (-100, 100), (-1e-6, 1e-6), (0, 1e9)))
    with np.errstate(over="ignore"):  # f16
        x = random_array(rng, random_shape(rng, (0, 3)), element, *span)
        if element.is_float and x.size:
            x.flat[0] = pick(rng, (np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-5, 123456789))
    return Case("NumericToString", version, [param(x, element)])


@cases("UTF8Validate", "extension")
def validate(rng: Random, version: str) -> Case:
    pieces = [broken(rng) for _ in range(int(rng.integers(1, 4)))]
    return Case("UTF8Validate", version, packed(pieces), {"replace_mode": bool(rng.integers(2))}, outputs=3)


@cases("NormalizeUnicode", "extension")
def normalize(rng: Random, version: str) -> Case:
    form = {"normalization_form": pick(rng, ("NFC", "NFD", "NFKC", "NFKD"))}
    return Case("NormalizeUnicode", version, *with_flags(rng, [pick(rng, (text, broken))(rng) for _ in range(3)], form))


@cases("CaseFold", "extension")
def fold(rng: Random, version: str) -> Case:
    encoding = pick(rng, ("", "utf-8"))
    attributes = {"encoding": encoding, "lower": bool(encoding) or bool(rng.integers(2))}
    inputs = packed([text(rng) for _ in range(3)])
    oracle = "both" if encoding else "cpu"  # the reference does not initialize the range of letters
    return Case("CaseFold", version, inputs, attributes, outputs=3, oracle=oracle)


@cases("CharsMapNormalization", "extension")
def charsmap(rng: Random, version: str) -> Case:
    names = ("add_dummy_prefix", "remove_extra_whitespaces", "escape_whitespaces", "case_fold")
    attributes = {name: bool(rng.integers(2)) for name in names}
    attributes["normalization_form"] = pick(rng, ("nfc", "nfd", "nfkc", "NFKD"))
    pieces = [pick(rng, (text, broken))(rng) for _ in range(3)]
    return Case("CharsMapNormalization", version, *with_flags(rng, pieces, attributes))


def with_flags(
    rng: Random, pieces: list[bytes], attributes: dict[str, object]
) -> tuple[list[object], dict[str, object], int]:
    """The inputs of a normalization with or without skip flags, its attributes, and the number of outputs."""
    if rng.random() < 0.5:
        return packed(pieces), attributes, 3
    return [*packed(pieces), flags(rng, len(pieces))], attributes, 4


@cases("RegexNormalization", "extension")
def substitute(rng: Random, version: str) -> Case:
    pieces = [text(rng) for _ in range(3)]
    inputs, attributes, outputs = with_flags(rng, pieces, {"global_replace": bool(rng.integers(2))})
    replacement = pick(
        rng, (b"", b"_", b"$0$0", rb"<\1>", b"$$", b"${1}-$2", b"$9", b"a long replacement of many bytes")
    )
    return Case(
        "RegexNormalization", version, [*inputs, line(pick(rng, PATTERNS)), line(replacement)], attributes, outputs
    )


@cases("SpecialTokensSplit", "extension")
def special(rng: Random, version: str) -> Case:
    inputs = ragged_texts(rng)
    pattern = pick(rng, (rb"<s>|</s>|\[MASK\]", rb"\s*(<s>|</s>)\s*", rb"(?:\s*)(\[MASK\])(?:\s*)|(<\|end\|>)"))
    return Case("SpecialTokensSplit", version, [*inputs, line(pattern)], outputs=6, inconsistent_shapes=True)


@cases("RegexSplit", "extension")
def split(rng: Random, version: str) -> Case:
    inputs = ragged_texts(rng)
    attributes = {
        "behaviour": pick(rng, ("remove", "isolate", "contiguous", "mergedwithprevious", "mergedwithnext")),
        "invert": bool(rng.integers(2)),
        "max_splits": pick(rng, (-1, -1, 1, 3)),
    }
    patterns = [p for p in PATTERNS if not p.startswith(rb"(\w)")]
    skips = [flags(rng, inputs[2].value.size)]
    return Case(
        "RegexSplit",
        version,
        [*inputs, *skips, line(pick(rng, patterns))],
        attributes,
        outputs=6,
        inconsistent_shapes=True,
    )


@cases("ByteFallback", "extension")
def fallback(rng: Random, version: str) -> Case:
    pieces = [pick(rng, (b"<0x0A>", b"<0xFF>", b"<0xGG>", b"<abcd>", b"ab", b"<0x1>", "é".encode())) for _ in range(4)]
    return Case("ByteFallback", version, packed(pieces), outputs=3)


@cases("BytesToChars", "extension")
def to_chars(rng: Random, version: str) -> Case:
    pieces = [bytes(rng.integers(0, 256, rng.integers(0, 6)).astype(np.uint8)) for _ in range(4)]
    inputs = ragged(rng, pieces)
    if rng.random() < 0.5:
        return Case("BytesToChars", version, inputs, outputs=5)
    return Case("BytesToChars", version, [*inputs, flags(rng, 4)], outputs=6)


@cases("CharsToBytes", "extension")
def to_bytes(rng: Random, version: str) -> Case:
    return Case("CharsToBytes", version, ragged(rng, [characters(rng) for _ in range(4)]), outputs=3)


@cases("ContribStringJoin", "extension")
def join(rng: Random, version: str) -> Case:
    inputs = strings(rng, rank=(0, 3))
    rank = inputs[0].value.ndim
    axis = int(rng.integers(-rank, rank)) if rank else 0
    separator = pick(rng, (b"", b", ", "·".encode()))
    return Case(
        "ContribStringJoin", version, [*inputs, line(separator), const(axis, pick(rng, (et.i32, et.i64)))], outputs=3
    )


@cases("ContribStringSplit", "extension")
def string_split(rng: Random, version: str) -> Case:
    skip = const(bool(rng.integers(2)), et.boolean)
    inputs = [*strings(rng, rank=(1, 2)), line(pick(rng, (b"", b" ", b"l", b"  "))), skip]
    return Case("ContribStringSplit", version, inputs, outputs=5)
