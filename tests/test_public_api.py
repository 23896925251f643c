"""The public API: every name resolves, and every public object has a docstring."""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload

ROOT = Path(__file__).parents[1]
DIGITS = ROOT / "models" / "digits" / "model.xml"
PUBLIC = [(name, getattr(irload, name)) for name in irload.__all__]


def members(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that our classes define, inherited ones of ours included."""
    for name in dir(cls):
        if name.startswith("_"):
            continue
        home = next((c for c in cls.__mro__ if name in vars(c)), None)
        if home is None or not home.__module__.startswith("irload"):
            continue
        member = vars(home)[name]
        if isinstance(member, property | staticmethod | classmethod) or inspect.isfunction(member):
            yield f"{cls.__name__}.{name}", member


def test_names_are_sorted_and_resolve():
    assert list(irload.__all__) == sorted(irload.__all__)
    assert set(irload.__all__) < set(dir(irload))
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = irload.nonsense


@pytest.mark.parametrize(("name", "thing"), PUBLIC, ids=[n for n, _ in PUBLIC])
def test_docstrings_are_complete(name, thing):
    if not callable(thing):
        return
    assert len(inspect.getdoc(thing) or "") > 20, f"{name} is too short"
    if inspect.isclass(thing):
        silent = [n for n, m in members(thing) if not (inspect.getdoc(getattr(m, "fget", None) or m) or "")]
        assert not silent, f"without a docstring: {', '.join(silent)}"
        if is_dataclass(thing) and not issubclass(thing, irload.Op):
            assert not (thing.__doc__ or "").startswith(f"{thing.__name__}("), "the docstring is the generated one"


@pytest.mark.parametrize("options", [irload.CompileOptions, irload.GenerationOptions])
def test_every_option_is_documented(options):
    text = inspect.getdoc(options) or ""
    assert [name for name in options.__optional_keys__ if f"`{name}`" not in text] == []


@pytest.mark.parametrize("module", [irload.attr, irload.edit, irload.elements])
def test_public_modules_export_only_their_own_names(module):
    exported = set(module.__all__)
    assert exported <= set(vars(module))
    assert not exported & {"Any", "Callable", "Final", "Literal", "Mapping", "Sequence", "np", "record"}
    own = {name for name, thing in vars(module).items() if getattr(thing, "__module__", None) == module.__name__}
    assert {name for name in own if not name.startswith("_")} <= exported


def test_mistakes_in_a_call_raise_the_documented_exceptions(tmp_path):
    model = irload.read_model(DIGITS)
    for error, call in (
        (TypeError, lambda: irload.read_model(3)),
        (TypeError, lambda: irload.compile_model(model, speed=1)),
        (TypeError, lambda: irload.infer(DIGITS)),
        (TypeError, lambda: irload.correct_ports(DIGITS, tmp_path / "m.xml")),
        (TypeError, lambda: irload.check_finite(DIGITS, np.zeros((1, 1, 8, 8), np.float32))),
        (TypeError, lambda: irload.edit.add_output(model, 5)),
        (TypeError, lambda: irload.edit.rename(model, "image")),
        (TypeError, lambda: irload.edit.rename(model, {"image": 5})),
        (TypeError, lambda: irload.edit.reshape(model, 5)),
        (TypeError, lambda: irload.edit.set_batch(model, (1,))),
        (FileNotFoundError, lambda: irload.check(tmp_path / "none.xml")),
        (irload.ReadError, lambda: irload.read_model(tmp_path / "none.xml")),
        (ValueError, lambda: irload.check(DIGITS, target="2021")),
        (FileExistsError, lambda: irload.correct_ports(model, DIGITS)),
        (OSError, lambda: irload.save_model(model, tmp_path / "none" / "m.xml")),
        (KeyError, lambda: irload.compile_model(model)(np.zeros((1, 1, 8, 8), np.float32))["none"]),
    ):
        with pytest.raises(error):
            call()


def test_save_model_replaces_the_files_of_its_model(tmp_path):
    for suffix in (".xml", ".bin"):
        (tmp_path / f"m{suffix}").write_bytes(DIGITS.with_suffix(suffix).read_bytes())
    x = np.load(DIGITS.parent / "digit_7_0.npy")
    model = irload.read_model(tmp_path / "m.xml")
    irload.save_model(model, tmp_path / "m.xml", compress_to_fp16=True)
    assert (tmp_path / "m.bin").stat().st_size < DIGITS.with_suffix(".bin").stat().st_size
    assert irload.compile_model(tmp_path / "m.xml")(x)[0].argmax() == 7


@pytest.mark.parametrize(("name", "thing"), [p for p in PUBLIC if inspect.isfunction(p[1])])
def test_functions_explain_their_arguments_and_errors(name, thing):
    text = inspect.getdoc(thing) or ""
    missing = [p for p in inspect.signature(thing).parameters if p not in text and p != "model"]
    assert not missing, f"{name} does not mention {missing}"
    assert "Raises" in text or "Never raises" in text


def test_limits_document_each_field():
    source = (ROOT / "irload" / "safety" / "limits.py").read_text()
    for field in fields(irload.Limits):
        assert f"    {field.name}: " in source
        assert '"""' in source.split(f"    {field.name}: ", 1)[1].split("\n")[1]


def test_errors_have_one_root():
    errors = [t for n, t in PUBLIC if inspect.isclass(t) and issubclass(t, Exception)]
    assert len(errors) >= 10
    assert all(issubclass(e, irload.IRError) for e in errors)


def test_importing_is_cheap():
    probe = "import sys, irload; print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout.split()
    assert not {"numpy", "lxml", "ml_dtypes", "rich", "click"} & set(loaded)


def test_the_package_is_marked_as_typed():
    assert (ROOT / "irload" / "py.typed").exists()
