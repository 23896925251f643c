"""Which plans are kept, and when one that was kept is taken."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

import irload
from irload import model_cache
from irload.model_cache import identity, models_folder
from irload.model_cache.cached import CachedModel
from irload.plan.backends.registry import registered
from irload.plan.sanitizing import sanitizing
from tests.model_cache.conftest import image, write
from tests.plan.toy import Toy

MODELS = Path(__file__).parents[2] / "models"


def count() -> int:
    return models_folder().contents().count


def is_cached(path: Path, **options) -> bool:
    return isinstance(irload.compile_model(path, **options), CachedModel)


def test_the_second_time(model):
    assert [is_cached(model) for _ in range(3)] == [False, True, True]
    assert count() == 1


@pytest.mark.parametrize(
    "options",
    [{"threads": 3}, {"precise": True}, {"precision": "auto"}, {"limits": irload.Limits(layers=1000)}],
    ids=lambda options: next(iter(options)),
)
def test_options_have_plans_of_their_own(model, options):
    irload.compile_model(model, **{"threads": 1} | options)
    assert not is_cached(model, threads=1)
    assert is_cached(model, **{"threads": 1} | options)
    assert is_cached(model, threads=1)


def test_strictness_and_jit_make_no_difference(model):
    irload.compile_model(model)
    assert is_cached(model, strict=True)
    assert is_cached(model, jit=True)


@pytest.mark.parametrize(
    "options", [{"cache": False}, {"optimize": False}, {"mmap": True}, {"tune": True}, {"jit": False}], ids=str
)
def test_what_is_compiled_otherwise_is_not_kept(model, options):
    irload.compile_model(model, **options)
    assert count() == 0
    irload.compile_model(model)
    assert not is_cached(model, **options)


def test_a_model_that_was_read_is_not_looked_for(model):
    irload.compile_model(model)
    assert type(irload.compile_model(irload.read_model(model))) is irload.CompiledModel


@pytest.mark.parametrize("word", ["off", "0", " No "])
def test_the_environment_turns_it_off(model, monkeypatch, word):
    irload.compile_model(model)
    monkeypatch.setenv("IRLOAD_MODEL_CACHE", word)
    assert not is_cached(model)


def test_another_file_of_the_same_text(model, tmp_path):
    irload.compile_model(model)
    other = write(tmp_path / "other", scale=3)
    assert not is_cached(other)
    ours, theirs = (irload.compile_model(m)(image())[0] for m in (model, other))
    assert np.allclose(theirs, 3 * ours, atol=1e-4)


def test_text_that_changed(model):
    irload.compile_model(model)
    write(model.parent, type="Abs")
    assert not is_cached(model)
    assert irload.compile_model(model).explain() != ""


@pytest.mark.parametrize("how", ["size", "content", "times kept", "removed"])
def test_weights_that_changed(model, how):
    irload.compile_model(model)
    beside = model.with_suffix(".bin")
    before = os.stat(beside)
    data = beside.read_bytes()
    if how == "removed":
        beside.unlink()
        with pytest.raises(irload.ReadError):
            irload.compile_model(model)
        return
    beside.write_bytes(data + b"\0" if how == "size" else bytes(reversed(data)))
    if how == "times kept":
        os.utime(beside, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert not is_cached(model)
    assert is_cached(model)


def test_weights_that_are_another_file_now(model):
    irload.compile_model(model)
    beside = model.with_suffix(".bin")
    twin = beside.with_name("twin")
    twin.write_bytes(beside.read_bytes())
    status = os.stat(beside)
    os.utime(twin, ns=(status.st_atime_ns, status.st_mtime_ns))
    os.replace(twin, beside)
    assert not is_cached(model)


def test_what_was_written_just_now_may_be_written_again(model, monkeypatch):
    monkeypatch.setattr(identity, "SETTLED", 60_000_000_000)
    irload.compile_model(model)
    assert count() == 0


def test_a_file_that_changes_while_it_is_compiled(model, monkeypatch):
    place = model_cache.place_of(model, irload.compile_model(model, cache=False)._options)
    compiled = irload.compile_model(model, cache=False)
    write(model.parent, scale=2)
    place.keep(compiled)
    assert count() == 0


def test_open_shapes(tmp_path):
    path = write(tmp_path / "open", batch=-1)
    irload.compile_model(path)(image())
    assert count() == 0


@pytest.mark.parametrize("name", ["state", "loop", "dynamic"])
def test_states_bodies_and_open_shapes(name):
    irload.compile_model(MODELS / name / "model.xml")
    assert count() == 0


def test_ports_that_declare_what_is_not_inferred(tmp_path):
    path = write(tmp_path / "untrue", channels=4)
    own = irload.compile_model(path)
    found = irload.compile_model(path)
    assert isinstance(found, CachedModel)
    assert len(found.differences) == 1
    for a, b in zip(own.differences, found.differences, strict=True):
        assert (str(a), a.where, a.port, a.message) == (str(b), b.where, b.port, b.message)
    assert found.warnings == own.warnings
    with pytest.raises(irload.DeclaredDiffers) as refused:
        irload.compile_model(path, strict=True)
    with pytest.raises(irload.DeclaredDiffers) as plainly:
        irload.compile_model(path, strict=True, cache=False)
    assert str(refused.value) == str(plainly.value)


def test_warnings_are_kept(tmp_path):
    path = write(tmp_path / "warned")
    path.write_text(path.read_text().replace('name="small"', 'name="small" colour="red"'))
    own = irload.compile_model(path, cache=False)
    irload.compile_model(path)
    found = irload.compile_model(path)
    assert isinstance(found, CachedModel)
    assert found.warnings == own.warnings


def test_messages_name_the_file_as_it_was_given(tmp_path, monkeypatch):
    path = write(tmp_path / "untrue", channels=4)
    monkeypatch.chdir(path.parent)
    for given in (path, "model.xml", path, "model.xml"):
        assert irload.compile_model(given).differences[0].where.file == str(given)
    assert count() == 2


def test_large_models(model, monkeypatch):
    monkeypatch.setattr(model_cache, "LARGEST_PLAN", 500)
    irload.compile_model(model)
    assert count() == 0


def test_the_oldest_go(tmp_path, monkeypatch):
    monkeypatch.setattr(model_cache, "LARGEST", 1)
    irload.compile_model(write(tmp_path / "one"))
    assert count() == 0


def test_back_ends_of_users(model):
    irload.compile_model(model)
    with registered(Toy()):
        assert not is_cached(model)
    assert is_cached(model)


def test_operations_of_users(model, passing_extensions):
    irload.compile_model(model)

    class Doubled(irload.Op, type="Doubled", opset="mine"):
        def infer(self, context, x):
            return x

        def compute(self, context, x):
            return x + x

    assert not is_cached(model)


def test_plans_that_check_themselves(model):
    irload.compile_model(model)
    with sanitizing():
        assert not is_cached(model)


def test_irload_itself_may_change(model, monkeypatch):
    irload.compile_model(model)
    monkeypatch.setattr(identity, "_sources", lambda: "other files")
    assert not is_cached(model)


def test_an_installation_whose_files_cannot_be_listed(model, monkeypatch):
    before = identity._sources()
    identity._sources.cache_clear()
    monkeypatch.setattr(identity.irload, "__file__", "/no/such/archive.zip/irload/__init__.py")
    assert identity._sources() != before
    assert [is_cached(model), is_cached(model)] == [False, True]
    identity._sources.cache_clear()


@pytest.mark.parametrize("name", ["missing.xml", "folder", "a\0b.xml"])
def test_what_is_no_file(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(irload.IRError):
        irload.compile_model(f"{tmp_path}/{name}")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
def test_a_fifo_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "model.xml")
    with pytest.raises(irload.ReadError):
        irload.compile_model(tmp_path / "model.xml")
