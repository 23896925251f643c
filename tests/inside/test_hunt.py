"""The model of the hunt in docs/debugging.md comes from its script, is wrong, and is right without the mistake."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import irload

HUNT = Path(__file__).parents[2] / "docs" / "hunt"
IMAGES = sorted((HUNT.parents[1] / "models" / "digits").glob("digit_*.npy"))


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("hunt", HUNT / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def right(model: irload.Model) -> int:
    compiled = irload.compile_model(model)
    return sum(int(np.argmax(compiled(np.load(f))[0])) == int(f.stem.split("_")[1]) for f in IMAGES)


def test_the_script_makes_it(script, tmp_path):
    script.make(tmp_path)
    for file in ("digits_int8.xml", "digits_int8.bin"):
        assert (tmp_path / file).read_bytes() == (HUNT / file).read_bytes()


def test_the_mistake_is_what_is_wrong(script):
    model = irload.read_model(script.DIGITS / "model.xml")
    found = script.ranges(model)
    assert right(irload.read_model(HUNT / "digits_int8.xml")) == 17
    mended = script.int8(model, {layer: found[source] for layer, source in script.INPUTS.items()})
    assert right(mended) == len(IMAGES) == 20
