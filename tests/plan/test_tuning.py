"""Tuning: kernels chosen by time, cached in a file that may be lost or damaged."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from irload import compile_model
from irload.plan.backends.base import Options
from irload.plan.backends.numpy import tuning
from irload.plan.backends.numpy.executable import SharedPacking
from irload.plan.backends.numpy.kernels import weight_streaming
from irload.plan.backends.numpy.requests import requests
from irload.plan.backends.numpy.tuning import Tuner, describe
from irload.plan.executor import Executor
from irload.plan.ir.program import Program, Step
from irload.plan.ir.steps import ConvStep, MatMulStep
from irload.plan.memory.memory import Memory
from irload.system.machine import cache_folder
from tests.plan.programs import constant, random, value

pytestmark = pytest.mark.numpy_kernels

DIGITS = Path(__file__).parents[2] / "models" / "digits"
WAYS = {
    1: ["winograd", "im2col"],
    2: ["winograd", "im2col of a small map", "im2col"],
}
"""The kernels that support the convolution below, by the number of threads, in the order of trial."""


def convolution() -> tuple[Program, ConvStep]:
    """A 3×3 convolution that several kernels support."""
    x, out = value(1, 32, 12, 12), value(1, 32, 12, 12)
    weights = constant(random(1, 32, 32, 3, 3))
    ones = (1, 1)
    step = ConvStep([x, weights], [out], strides=ones, dilations=ones, pads_begin=ones, pads_end=ones)
    return Program([step], [x], [out]), step


def described(step: Step, threads: int) -> str:
    """The key of a step in the file."""
    program = Program([step], [v for v in step.inputs if not v.is_constant], step.outputs)
    return describe(step, Memory(program, requests(program, [step])), threads)


def plan(program: Program, file: Path, threads: int = 1) -> Executor:
    """A plan tuned with a file."""
    return Executor(program, Options(threads), shared={"numpy": SharedPacking(tuner=Tuner(file))})


@pytest.mark.parametrize(("threads", "best"), [(t, name) for t, names in WAYS.items() for name in names])
def test_the_fastest_runs_and_is_remembered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, best: str, threads: int
) -> None:
    program, step = convolution()
    tried: list[str] = []

    def clock(phases: object, run: object) -> float:
        tried.append(WAYS[threads][len(tried)])
        return 0.0 if tried[-1] == best else 1.0

    monkeypatch.setattr(tuning, "_least", clock)
    file = tmp_path / "deep" / "tuned.json"
    first = plan(program, file, threads)
    assert tried == WAYS[threads]
    assert first.kernels[-1].name == best
    x = random(1, 32, 12, 12, seed=1)
    expected = Executor(convolution()[0], Options(1)).run([x])[0]
    np.testing.assert_allclose(first.run([x])[0], expected, rtol=1e-3, atol=1e-4)
    assert json.loads(file.read_text())[tuning.machine()] == {described(step, threads): best}
    assert plan(convolution()[0], file, threads).kernels[-1].name == best
    assert tried == WAYS[threads], "cached steps are not timed again"


@pytest.mark.parametrize("threads", [1, 2])
def test_kernels_whose_first_phase_is_empty(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, threads: int) -> None:
    """Weight streaming has nothing to copy if BLAS copies operands itself, as it does without AVX-512."""
    monkeypatch.setattr(weight_streaming, "small_kernels", lambda: False)
    a, b = random(32, 64), random(64, 48, seed=1)
    x, out = value(32, 64), value(32, 48)
    program = Program([MatMulStep([x, constant(b)], [out])], [x], [out])
    np.testing.assert_allclose(plan(program, tmp_path / "tuned.json", threads).run([a])[0], a @ b, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "content", ["", "[1]", "{", '{"x": 1}', "\x00", '{"MACHINE": {"KEY": 5}}', '{"MACHINE": {"KEY": "no such kernel"}}']
)
def test_a_damaged_file_is_ignored(tmp_path: Path, content: str) -> None:
    program, step = convolution()
    file = tmp_path / "tuned.json"
    file.write_text(content.replace("MACHINE", tuning.machine()).replace("KEY", described(step, 1)))
    plan(program, file)
    assert json.loads(file.read_text())[tuning.machine()][described(step, 1)] in WAYS[1]


def test_other_machines_and_steps_are_kept(tmp_path: Path) -> None:
    file = tmp_path / "tuned.json"
    file.write_text(json.dumps({"another": {"step": "kernel"}, tuning.machine(): {"older": "one"}}))
    plan(convolution()[0], file)
    document = json.loads(file.read_text())
    assert document["another"] == {"step": "kernel"}
    assert document[tuning.machine()]["older"] == "one"
    assert len(document[tuning.machine()]) == 2


def test_a_cache_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(UserWarning, match=r"cannot store tuned kernels in .*tuned\.json"):
        plan(convolution()[0], tmp_path / "file" / "tuned.json")


def test_the_key_distinguishes_shapes_layouts_and_threads() -> None:
    _, step = convolution()
    product = MatMulStep([value(4, 8), constant(random(8, 16))], [value(4, 16)])
    keys = {described(step, 1), described(step, 2), described(product, 1)}
    planar = Memory(Program([step], [step.inputs[0]], step.outputs))
    assert len({*keys, describe(step, planar, 1)}) == 4


def test_a_tuned_model_gives_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path))
    assert cache_folder() == tmp_path
    x = np.load(DIGITS / "input_0.npy")
    plain = compile_model(DIGITS / "model.xml", optimize=False)(x)[0]
    tuned = compile_model(DIGITS / "model.xml", tune=True)(x)[0]
    np.testing.assert_allclose(tuned, plain, rtol=1e-4, atol=1e-5)
    assert (tmp_path / "tuned.json").exists()


def test_without_tuning_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path))
    compile_model(DIGITS / "model.xml")(np.load(DIGITS / "input_0.npy"))
    assert not list(tmp_path.iterdir())
