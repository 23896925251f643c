"""Which plans are cached, and when a cached plan is used."""

from __future__ import annotations

import os
import subprocess
import sys
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
def test_options_have_separate_plans(model, options):
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
def test_uncacheable_options_are_not_cached(model, options):
    irload.compile_model(model, **options)
    assert count() == 0
    irload.compile_model(model)
    assert not is_cached(model, **options)


def test_a_loaded_model_is_not_cached(model):
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


def test_weights_are_identified_by_content(model, tmp_path):
    """Not by path, inode or times: a copy is the same model, even if it was written just now."""
    irload.compile_model(model)
    copy = tmp_path / "elsewhere" / "net.xml"
    copy.parent.mkdir()
    copy.write_bytes(model.read_bytes())
    copy.with_suffix(".bin").write_bytes(model.with_suffix(".bin").read_bytes())
    assert is_cached(copy)
    assert count() == 1


def test_other_weights_that_look_the_same(model, monkeypatch):
    """Read-only images that are mounted at one path have equal inodes, sizes and times."""
    beside = model.with_suffix(".bin")
    status = os.stat(beside)
    before = irload.compile_model(model)(image())[0]
    write(model.parent, scale=2)
    stat, fstat = os.stat, os.fstat
    monkeypatch.setattr(os, "stat", lambda path, **more: status if str(path) == str(beside) else stat(path, **more))
    monkeypatch.setattr(os, "fstat", lambda fd: status if fstat(fd).st_ino == status.st_ino else fstat(fd))
    assert not is_cached(model)
    compiled = irload.compile_model(model)
    assert isinstance(compiled, CachedModel)
    assert np.allclose(compiled(image())[0], 2 * before, atol=1e-4)


def opened(path: Path) -> model_cache.CacheEntry:
    place = model_cache.entry_of(path, irload.compile_model(path, cache=False)._options)
    assert place is not None
    return place


def test_a_file_that_is_replaced_while_it_is_compiled(model, tmp_path):
    """The opened file is hashed, read and cached, even if another file is renamed over it."""
    wanted = irload.compile_model(model, cache=False)(image())[0]
    place = opened(model)
    other = write(tmp_path / "other", scale=2)
    for ending in (".xml", ".bin"):
        os.replace(other.with_suffix(ending), model.with_suffix(ending))
    compiled = irload.CompiledModel(place.read())
    compiled.prepare()
    place.keep(compiled)
    assert np.array_equal(compiled(image())[0], wanted)
    assert not is_cached(model)
    assert np.allclose(irload.compile_model(model)(image())[0], 2 * wanted, atol=1e-4)


def test_a_file_that_is_written_while_it_is_compiled(model):
    place = opened(model)
    beside = model.with_suffix(".bin")
    status = os.stat(beside)
    write(model.parent, scale=2)
    os.utime(beside, ns=(status.st_atime_ns, status.st_mtime_ns))
    with pytest.raises(irload.ReadError, match="has changed since it was opened"):
        irload.CompiledModel(place.read()).prepare()
    place.files.close()
    assert count() == 0


def test_the_plan_of_another_model_is_not_cached(model):
    place = opened(model)
    compiled = irload.compile_model(model, cache=False)
    write(model.parent, scale=2)
    place.keep(compiled)
    assert count() == 0


def test_weights_beyond_the_bound_are_not_hashed(model, monkeypatch):
    monkeypatch.setattr(model_cache, "LARGEST_PLAN", 863)
    assert model_cache.entry_of(model, irload.compile_model(model)._options) is None
    assert count() == 0


def test_without_xxhash_no_plan_is_cached(model, monkeypatch):
    monkeypatch.setattr(model_cache, "has_hash", lambda: False)
    assert [is_cached(model), is_cached(model)] == [False, False]
    assert count() == 0


def test_descriptors_are_closed(model):
    irload.compile_model(model)
    before = len(os.listdir("/proc/self/fd"))
    held = [irload.compile_model(model, threads) for threads in (1, 1, 2, 2)]
    assert len(held) == 4
    assert len(os.listdir("/proc/self/fd")) == before


def test_open_shapes(tmp_path):
    path = write(tmp_path / "open", batch=-1)
    compiled = irload.compile_model(path)
    assert count() == 0, "no shape is known yet"
    compiled(image())
    assert count() == 2, "a description of the model, and the plan of the first shape"


@pytest.mark.parametrize("name", ["state", "loop", "dynamic"])
def test_states_bodies_and_open_shapes(name):
    irload.compile_model(MODELS / name / "model.xml")
    assert count() == 0


def test_differences_to_declarations_are_cached(tmp_path):
    path = write(tmp_path / "untrue", channels=4)
    own = irload.compile_model(path)
    compiled = irload.compile_model(path)
    assert isinstance(compiled, CachedModel)
    assert len(compiled.differences) == 1
    for a, b in zip(own.differences, compiled.differences, strict=True):
        assert (str(a), a.where, a.port, a.message) == (str(b), b.where, b.port, b.message)
    assert compiled.warnings == own.warnings
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
    compiled = irload.compile_model(path)
    assert isinstance(compiled, CachedModel)
    assert compiled.warnings == own.warnings


def test_messages_name_the_given_path(tmp_path, monkeypatch):
    path = write(tmp_path / "untrue", channels=4)
    path.write_text(path.read_text().replace('<data strides="1,1"', '<data colour="red" strides="1,1"'))
    monkeypatch.chdir(path.parent)
    for argument in (path, "model.xml", path, "model.xml"):
        compiled, own = irload.compile_model(argument), irload.compile_model(argument, cache=False)
        assert compiled.differences[0].where.file == str(argument)
        assert compiled.warnings == own.warnings
        assert any(str(argument) in w for w in compiled.warnings)
    assert count() == 1


def test_large_models(model, monkeypatch):
    monkeypatch.setattr(model_cache, "LARGEST_PLAN", 500)
    irload.compile_model(model)
    assert count() == 0


def test_the_oldest_plans_are_evicted(tmp_path, monkeypatch):
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


def test_sanitized_plans_are_not_cached(model):
    irload.compile_model(model)
    with sanitizing():
        assert not is_cached(model)


def test_another_version_of_irload_compiles_again(model, monkeypatch):
    irload.compile_model(model)
    monkeypatch.setattr(identity, "stamp", lambda: "other files")
    assert not is_cached(model)


def test_a_process_with_replaced_sources_caches_nothing(model, monkeypatch):
    monkeypatch.setattr(model_cache, "unchanged", lambda: False)
    irload.compile_model(model)
    assert count() == 0


@pytest.mark.parametrize("name", ["missing.xml", "folder", "a\0b.xml"])
def test_paths_other_than_files_are_rejected(tmp_path, name):
    (tmp_path / "folder").mkdir()
    with pytest.raises(irload.IRError):
        irload.compile_model(f"{tmp_path}/{name}")


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs")
def test_a_fifo_does_not_block(tmp_path):
    os.mkfifo(tmp_path / "model.xml")
    with pytest.raises(irload.ReadError):
        irload.compile_model(tmp_path / "model.xml")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_processes_that_start_while_files_change(tmp_path):
    """`python -m tests.model_cache.changing_files 2000 1` starts more."""
    program = "import sys; from tests.model_cache import changing_files; sys.exit(changing_files.main())"
    done = subprocess.run([sys.executable, "-c", program, "60", "3"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "'CachedModel'" in done.stdout
