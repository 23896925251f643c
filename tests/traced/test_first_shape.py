"""The plan of the first shape of a model with dynamic inputs is stored; a second shape is traced."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import irload
from irload import model_cache
from irload.safety.private_folder import PrivateFolder
from tests.traced.files import is_light, saved, values
from tests.traced.nets import encoder

pytestmark = pytest.mark.usefixtures("folder")


@pytest.mark.parametrize("prepared", [False, True])
def test_the_first_shape(prepared: bool, tmp_path: Path, refusing: Callable[[], None]) -> None:
    """Its plan is stored, so that later processes run it without the graph."""
    path, x = saved(encoder(1), tmp_path), values(1, 10, 32)
    own = irload.compile_model(path, 1)
    if prepared:
        own.prepare(x)
    else:
        own(x)
    compiled = irload.compile_model(path, 1)
    refusing()
    compiled.prepare(x)
    for seed in range(3):
        x = values(1, 10, 32, seed=seed)
        np.testing.assert_array_equal(compiled(x)[0], own(x)[0])
    for seed in range(2):  # converted inputs have the types of the first shape, too
        wide = values(1, 10, 32, seed=seed).astype(np.float64)
        np.testing.assert_array_equal(compiled(wide)[0], own(wide)[0])
    assert is_light(compiled)
    assert compiled._first[2] is not None


def test_a_second_shape_in_another_process_is_traced(tmp_path: Path, folder: PrivateFolder) -> None:
    path = saved(encoder(1), tmp_path)
    own, other = irload.compile_model(path, 1), irload.compile_model(path, 1, cache=False)
    own(values(1, 10, 32))
    second = irload.compile_model(path, 1)
    for n in (20, 10, 20):
        np.testing.assert_allclose(second(values(1, n, 32))[0], other(values(1, n, 32))[0], rtol=1e-5, atol=1e-5)
    assert not is_light(second)
    assert folder.contents().count == 3, "the plan of the second shape is traced, not stored alone"
    third = irload.compile_model(path, 1)
    for n in (10, 30, 10, 20):
        np.testing.assert_allclose(third(values(1, n, 32))[0], other(values(1, n, 32))[0], rtol=1e-5, atol=1e-5)
    assert is_light(third)
    assert third._first is not None
    assert third._first[2] is None, "its packed weights are released"


def test_a_first_shape_that_contradicts_declarations_is_not_stored(tmp_path: Path, folder: PrivateFolder) -> None:
    """Its inference compares ports with their declarations, and every process must report differences."""
    path = saved(encoder(1), tmp_path)
    before, gelu, after = path.read_text().partition('type="Gelu"')
    output = after.index("<output>")
    path.write_text(before + gelu + after[:output] + after[output:].replace("<dim>-1</dim>", "<dim>3</dim>", 1))
    for _ in range(2):
        compiled = irload.compile_model(path, 1)
        compiled(values(2, 10, 32))
        assert len(compiled.differences) == 1
        assert folder.contents().count == 0
        with pytest.raises(irload.DeclaredDiffers):
            irload.compile_model(path, 1, strict=True)(values(2, 10, 32))
    compiled(values(3, 10, 32))
    assert folder.contents().count > 0


def test_a_large_plan_of_the_first_shape_is_not_stored(
    tmp_path: Path, folder: PrivateFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_cache, "LARGEST_PLAN", 1000)
    irload.compile_model(saved(encoder(1), tmp_path), 1)(values(1, 10, 32))
    assert folder.contents().count == 0
