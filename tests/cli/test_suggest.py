"""irrun run --random suggests shapes for dynamic inputs: shapes that all layers of the model accept."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from irrun.main import OK, USAGE

F = np.float32


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """The search may take any time: the machine may be busy."""
    monkeypatch.setattr("irrun.suggest.SECONDS", 900.0)


def image() -> tuple[Any, Any]:
    """Patches of 16×16 pixels with a learnt vector each, so an image must have one size and 3 channels."""
    x = ops.parameter([-1, -1, -1, -1], F, name="pixel_values")
    patches = ops.convolution(x, np.ones((4, 3, 16, 16), F), [16, 16], [0, 0], [0, 0], [1, 1])
    return x, ops.add(ops.reshape(patches, np.array([0, 4, -1]), True), np.ones((1, 4, 196), F))


def text() -> tuple[Any, Any, Any]:
    """Tokens with a mask of the same length, at most 77 of them."""
    ids, mask = ops.parameter([-1, -1], np.int64, name="ids"), ops.parameter([-1, -1], np.int64, name="mask")
    embedded = ops.gather(np.ones((9, 4), F), ids, np.array(0))
    length = ops.gather(ops.shape_of(ids), np.array([1]), np.array(0))
    places = ops.slice(np.ones((1, 77, 4), F), np.array([0]), length, np.array([1]), np.array([1]))
    weighted = ops.multiply(ops.add(embedded, places), ops.convert(ops.unsqueeze(mask, np.array(2)), "f32"))
    return ids, mask, weighted


def sound(window: int = 400) -> tuple[Any, Any]:
    """Windows of samples: a shorter input gives an empty result."""
    x = ops.parameter([-1, -1], F, name="samples")
    return x, ops.convolution(ops.unsqueeze(x, np.array(1)), np.ones((2, 1, window), F), [320], [0], [0], [1])


def saved(folder: Path, inputs: list[Any], outputs: list[Any]) -> Path:
    for port in (*inputs,):
        port.output(0).tensor.set_names({port.get_friendly_name()})
    ov.save_model(ov.Model(outputs, inputs), folder / "m.xml", compress_to_fp16=False)
    return folder / "m.xml"


def model(kind: str, folder: Path) -> Path:
    if kind == "clip":
        x, patches = image()
        ids, mask, words = text()
        return saved(folder, [ids, x, mask], [patches, words])
    *inputs, output = {"image": image, "text": text, "sound": sound}[kind]()
    return saved(folder, list(inputs), [output])


@pytest.mark.parametrize(
    ("kind", "shapes"),
    [
        ("image", {"pixel_values": "1,3,224,224"}),
        ("text", {"ids": "1,16", "mask": "1,16"}),
        ("sound", {"samples": "1,512"}),
        ("clip", {"ids": "1,16", "pixel_values": "1,3,224,224", "mask": "1,16"}),
    ],
)
def test_suggested_shapes_run(kind: str, shapes: dict[str, str], irrun, tmp_path: Path) -> None:
    file = model(kind, tmp_path)
    outcome = irrun("run", file, "--random", "0")
    assert outcome.code == USAGE
    words = shlex.split(outcome.err.rpartition("sizes, for example ")[2])
    assert {m[1]: m[2] for w in words for m in [re.fullmatch(r"(\w+)\[(.*)\]", w)] if m} == shapes
    assert irrun("run", file, "--random", "0", *words).code == OK


@pytest.mark.parametrize(
    ("given", "expected"),
    [((), ["ids[1,16]", "mask[1,16]", "order[1]"]), (("--shape", "ids[2,7]"), ["mask[2,7]", "order[2]"])],
)
def test_a_batch_and_lengths_that_are_given_are_tried(given: Any, expected: list[str], irrun, tmp_path: Path) -> None:
    """As for a decoder, which reorders the rows of its cache."""
    ids, mask, words = text()
    order = ops.parameter([-1], np.int64, name="order")
    reordered = ops.concat([ops.gather(words, order, np.array(0)), words], 2)
    file = saved(tmp_path, [ids, mask, order], [reordered])
    outcome = irrun("run", file, "--random", "0", *given)
    assert outcome.code == USAGE
    advice = shlex.split(outcome.err.rpartition("sizes, for example ")[2])
    assert [word for word in advice if word != "--shape"] == expected
    assert irrun("run", file, "--random", "0", *given, *advice).code == OK


def test_no_shape_is_suggested_if_none_suits(irrun, tmp_path: Path) -> None:
    x, output = sound(window=70_000)  # longer than any candidate
    outcome = irrun("run", saved(tmp_path, [x], [output]), "--random", "0")
    assert outcome.code == USAGE
    assert "give a file, or sizes that the model accepts: --shape 'samples[…]'" in outcome.err
