"""The options of compilation: declared once, accepted by every function that compiles a model."""

from __future__ import annotations

import inspect
import typing
from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.batch import Predictor, predict
from irload.batch.items import WorkerOptions
from irload.diagnostics.benchmark import benchmark
from irload.options import CompileOptions, Options

MODEL = Path(__file__).parents[1] / "models" / "digits" / "model.xml"
IMAGE = np.zeros((1, 1, 8, 8), np.float32)
COMPILING = {
    "compile_model": lambda **options: irload.compile_model(MODEL, **options),
    "compile_model of a Model": lambda **options: irload.compile_model(irload.read_model(MODEL), **options),
    "CompiledModel": lambda **options: irload.CompiledModel(irload.read_model(MODEL), **options),
    "predict": lambda **options: list(predict(MODEL, [IMAGE], **options)),
    "Predictor": lambda **options: Predictor(MODEL, **options),
    "WorkerOptions": lambda **options: WorkerOptions(str(MODEL), compile=CompileOptions(**options)),
    "benchmark": lambda **options: benchmark(irload.read_model(MODEL), [IMAGE], runs=1, warm_up=0, **options),
    "report": lambda **options: irload.report(MODEL, IMAGE, profile=True, **options),
}
SIGNATURES = {
    "compile_model": irload.compile_model,
    "CompiledModel": irload.CompiledModel.__init__,
    "predict": predict,
    "Predictor": Predictor.__init__,
    "benchmark": benchmark,
    "report": irload.report,
}


def test_keywords_and_fields_agree():
    keywords = typing.get_type_hints(CompileOptions)
    resolved = typing.get_type_hints(Options)
    assert keywords.keys() == {f.name for f in fields(Options)} - {"threads", "file", "variables", "resized"}
    assert {name for name in keywords if keywords[name] != resolved[name]} == {"limits"}, (
        "None: the limits of the model"
    )


@pytest.mark.parametrize("name", SIGNATURES)
def test_signatures_refer_to_the_declaration(name):
    parameters = inspect.signature(SIGNATURES[name], eval_str=True).parameters
    assert parameters["options"].annotation == typing.Unpack[CompileOptions]
    assert not parameters.keys() & CompileOptions.__optional_keys__


@pytest.mark.parametrize("name", COMPILING)
def test_unknown_keywords_are_named(name):
    with pytest.raises(
        TypeError, match="unexpected keyword argument 'colour'; the options are cache, jit, limits"
    ) as caught:
        COMPILING[name](colour="red")
    assert "threads" in str(caught.value)


@pytest.mark.parametrize("name", COMPILING)
def test_all_options_are_accepted(name):
    options = CompileOptions(
        optimize=True, precise=True, tune=False, jit=None, precision="f32", limits=None, strict=False, cache=False
    )
    COMPILING[name](**options)


@pytest.mark.parametrize("name", sorted(COMPILING.keys() - {"WorkerOptions"}))
@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"precision": "f16"}, "precision must be one of f32, bf16, auto, found 'f16'"),
        ({"precision": "bf16", "jit": False}, "which jit=False .* disables"),
        ({"jit": "off"}, "jit must be True, False or None, found 'off'"),
    ],
    ids=["unknown", "excluded", "text for jit"],
)
def test_invalid_options_are_refused(name, options, said):
    with pytest.raises(irload.InputInvalid, match=said):
        COMPILING[name](**options)


def test_the_model_that_was_read_cannot_be_mapped():
    model = irload.read_model(MODEL)
    for compiling in (irload.compile_model, irload.CompiledModel, Predictor):
        with pytest.raises(irload.InputInvalid, match="mmap requires a path"):
            compiling(model, mmap=True)
    assert len(list(predict(MODEL, [IMAGE], mmap=True))) == 1
    assert Predictor(MODEL, mmap=True).compiled(IMAGE)[0].shape == (1, 10)


def test_limits_of_the_model_are_the_default():
    limits = irload.Limits(iterations=7)
    model = irload.read_model(MODEL, limits=limits)
    assert irload.compile_model(model).limits is limits
    assert irload.compile_model(MODEL, limits=limits).limits is limits
    assert Predictor(model).compiled.limits is limits
    assert irload.compile_model(model, limits=irload.Limits()).limits == irload.Limits()


def test_options_are_resolved_once(monkeypatch):
    monkeypatch.setenv("IRLOAD_NUM_THREADS", "3")
    assert Options.of({}).threads == 3
    assert Options.of({"precise": True}, 2) == Options(2, precise=True)
    with pytest.raises(irload.InputInvalid, match="number of threads"):
        Options.of({}, 0)
