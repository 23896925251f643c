"""Rules about weights: thresholds, counts of values, overlaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irload
from irload.checks.weightscan import BLOCK, Scan, scan
from irload.core import element as et
from irload.core.element import ElementType
from irload.read import Weights
from models import ir
from tests.checks.test_details import saved


def constants(folder: Path, arrays: list[np.ndarray]) -> Path:
    """A file that returns constants."""
    graph = ir.Graph()
    for array in arrays:
        graph.result(graph.constant(array))
    return saved(folder, graph)


def odd(count: int, wild: int) -> np.ndarray:
    values = np.linspace(1, 2, count, dtype=np.float32)
    values[:wild] = 1e20
    return values


@pytest.mark.parametrize(
    ("floats", "wild", "size", "foreign"),
    [(8, 2, 3, True), (9, 2, 3, False), (12, 3, 3, True), (2, 1, 3, False), (8, 2, 2, False), (2, 2, 100, True)],
)
def test_implausible_constants(tmp_path, floats, wild, size, foreign):
    """IR611 requires at least two constants, and a fourth of all, with more than 1/50 of implausible values each."""
    arrays = [odd(100, size if k < wild else 0) for k in range(floats)]
    few = [odd(15, 15)] * 9  # too few values to be weights
    findings = irload.check(constants(tmp_path, [*arrays, *few, np.arange(100)])).findings
    assert [f.message for f in findings if f.code == "IR611"] == (
        [f"{wild} of {floats} floating-point constants hold implausible values"] if foreign else []
    )


WORDS: dict[ElementType, tuple[type, list[int], list[int], list[int]]] = {
    et.f16: (np.uint16, [0x7C01, 0xFC01, 0xFFFF], [0x7C00, 0xFC00], []),
    et.bf16: (np.uint16, [0x7F81, 0xFF81, 0xFFFF], [0x7F80, 0xFF80], [0x5D5E, 0xDD5E]),
    et.f32: (np.uint32, [0x7F800001, 0xFF800001], [0x7F800000, 0xFF800000], [0x5D5E0B6B, 0xDD5E0B6B]),
    et.f64: (
        *(np.uint64, [0x7FF0000000000001, 0xFFF0000000000001], [0x7FF0000000000000]),
        [0x43ABC16D674EC800, 0xC3ABC16D674EC800],
    ),
}


@pytest.mark.parametrize("element", WORDS, ids=lambda e: e.name)
@pytest.mark.parametrize("offset", [0, 1])
def test_counts_of_values(element, offset):
    """NaNs, infinities and magnitudes from 1e18 on count; the values just below each limit do not. In two blocks."""
    kind, nans, infinities, large = WORDS[element]
    below = [word - 1 for word in large] + [1, 0]
    words = [*nans, *infinities, *large, *below] + [0] * BLOCK + [*nans, *infinities, *large, *below]
    blob = bytes(offset) + np.array(words, kind).tobytes()
    wild = len(nans) + (0 if element is et.f16 else len(infinities) + len(large))
    expected = Scan(len(words), 2 * len(nans), 2 * len(infinities), 2 * wild, True)
    assert scan(Weights(blob), element, len(words), offset) == expected


def test_constants_that_are_not_scanned():
    assert scan(Weights(bytes(64)), et.i32, 16, 0) is None
    assert scan(Weights(None), et.f32, 16, 0) is None
    assert scan(Weights(bytes(64)), et.f32, 0, 0) is None
    assert scan(Weights(bytes(63)), et.f32, 16, 0) is None
    assert scan(Weights(bytes(64)), et.f32, 16, 0) == Scan(16, 0, 0, 0, False)
    smallest = bytes(60) + b"\1\0\0\0"
    assert scan(Weights(smallest), et.f32, 16, 0) == Scan(16, 0, 0, 0, True)


def test_empty_constants_need_no_file(tmp_path):
    file = constants(tmp_path, [np.zeros((0, 3), np.float32)])
    file.with_suffix(".bin").unlink()
    assert [f.code for f in irload.check(file).findings if f.severity == "error"] == []


def test_each_overlap_names_the_constant_that_reaches_farthest(tmp_path):
    file = constants(tmp_path, [np.ones(25, np.float32), np.ones(3, np.float32), np.ones(4, np.float32)])
    text = file.read_text("utf-8").replace('offset="100"', 'offset="8"').replace('offset="112"', 'offset="60"')
    file.write_text(text, encoding="utf-8")
    findings = [f for f in irload.check(file).findings if f.code == "IR605"]
    assert [f.message for f in findings] == [
        "takes bytes 8 to 20, which overlap 'Const_0' (id 0)",
        "takes bytes 60 to 76, which overlap 'Const_0' (id 0)",
    ]


@pytest.mark.parametrize(("element", "size", "code"), [("string", 40, "IR605"), ("f32", 12, "IR604"), ("f32", 8, "")])
def test_the_range_of_a_constant(tmp_path, element, size, code):
    """The shape determines the range; for strings, whose shape does not, the declared size does."""
    graph = ir.Graph()
    first = {"element_type": element, "shape": "2", "offset": 0, "size": size}
    second = {"element_type": "f32", "shape": "8", "offset": 8, "size": 32}
    for attributes, dims in ((first, (2,)), (second, (8,))):
        graph.result(graph.layer("Const", [], [(str(attributes["element_type"]), dims)], attributes=attributes)[0])
    file = saved(tmp_path, graph)
    findings = irload.check(file, np.ones(10, np.int32).tobytes()).findings
    assert {f.code for f in findings if f.code.startswith("IR6")} == ({code} if code else set())


def test_the_constants_beyond_a_truncated_file(tmp_path):
    file = constants(tmp_path, [np.ones(25, np.float32)] * 3)
    (findings,) = [f for f in irload.check(file, bytes(150)).findings if f.severity == "error"]
    assert findings.message == "the .bin file has 150 bytes, but its constants reach up to 300"
    assert findings.cause == "2 constants are outside, first 'Const_2' (id 2)"


@pytest.mark.parametrize(
    ("start", "size", "codes"), [(228, 327, ["IR612"]), (228, 328, []), (229, 328, ["IR602"]), (229, 329, [])]
)
def test_truncated_or_misplaced(tmp_path, start, size, codes):
    """The file counts as truncated if constants, padded by up to 64 bytes each, can reach the declared end."""
    file = constants(tmp_path, [np.ones(25, np.float32), np.ones(25, np.float32)])
    file.write_text(file.read_text("utf-8").replace('offset="100"', f'offset="{start}"'), encoding="utf-8")
    assert [f.code for f in irload.check(file, bytes(size)).findings if f.severity == "error"] == codes
