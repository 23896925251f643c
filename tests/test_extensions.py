"""Models with unknown operations, and user-defined operations, from Python and from the command line."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload
from irload import Op, TensorType, attr, elements
from irload.ops.registry import resolve
from irrun.main import main
from tests.harness.body import Body

pytestmark = pytest.mark.usefixtures("passing_extensions")

DOCS = Path(__file__).parents[1] / "docs"
MODEL, MY_OPS = DOCS / "extension" / "rms_norm.xml", DOCS / "extension" / "my_ops.py"
X, GAIN = np.array([[1, 2, 3, 4]], np.float32), np.array([1, 2, 1, 2], np.float32)


def graph(*types: tuple[str, str]) -> tuple[bytes, bytes]:
    """A model of an input of shape [2,3], a chain of layers of these types, and ReLU."""
    body = Body(bytearray())
    value = body.parameter(elements.f32, "2,3")
    for type, version in types:
        value = body.op(type, value, version=version)
    body.result(body.op("ReLU", value))
    return body.model()


# -- unknown operations -----------------------------------------------------------------------------------------------


def test_a_model_with_unknown_operations_is_inferred_around_them() -> None:
    model = irload.read_model(MODEL)
    assert [str(p.partial_shape) for p in model.outputs] == ["[?,4]"]
    assert model.outputs[0].element_type is elements.f32


def test_running_names_every_unknown_type_at_once() -> None:
    model = irload.read_model(*graph(("Rotary", "custom"), ("Exp", "opset1"), ("Gate", "custom"), ("Rotary", "custom")))
    with pytest.raises(irload.UnknownOperation, match="2 of its operation types") as caught:
        irload.compile_model(model)
    assert caught.value.types == (("Gate", "custom"), ("Rotary", "custom"))
    assert caught.value.where is not None
    assert caught.value.where.layer_type in ("Gate", "Rotary")


def test_unknown_operations_that_no_output_needs_do_not_matter() -> None:
    body = Body(bytearray())
    x = body.parameter(elements.f32, "2")
    body.op("Rotary", x, version="custom")
    body.result(body.op("ReLU", x))
    x = np.array([-1, 1], np.float32)
    assert irload.compile_model(irload.read_model(*body.model()))(x)[0].tolist() == [0, 1]


@pytest.mark.parametrize("command", ["inspect", "infer"])
def test_commands_that_do_not_run_take_unknown_operations(command, capsys) -> None:
    assert main([command, str(MODEL)]) == 0
    assert "RMSNorm" in capsys.readouterr().out


def test_irrun_reports_them(capsys) -> None:
    assert main([str(MODEL), "--random", "0", "--shape", "x[2,4]"]) == 4
    assert "RMSNorm (extension)" in capsys.readouterr().err


# -- extensions -------------------------------------------------------------------------------------------------------


def rms_norm(x: np.ndarray, gain: np.ndarray, epsilon: float) -> np.ndarray:
    return x / np.sqrt((x.astype(np.float64) ** 2).mean(-1, keepdims=True) + epsilon) * gain


@pytest.mark.parametrize("optimize", [False, True])
def test_the_worked_example(optimize: bool) -> None:
    irload.load_extension(MY_OPS)
    compiled = irload.compile_model(irload.read_model(MODEL), optimize=optimize)
    np.testing.assert_allclose(compiled([X, GAIN])[0], rms_norm(X, GAIN, 1e-5), rtol=1e-6)


def test_the_page_shows_the_file() -> None:
    code = MY_OPS.read_text(encoding="utf-8")
    assert code[code.index("class RMSNorm") :].strip() in (DOCS / "extensions.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "words",
    [
        ["--extension", MY_OPS, MODEL, "--random", "0", "--shape", "x[2,4]"],
        [f"--extension={MY_OPS}", "run", MODEL, "--random", "0", "--shape", "x[2,4]"],
        ["run", MODEL, "--extension", MY_OPS, "--random", "0", "--shape", "x[2,4]"],
        ["--extension", MY_OPS, "--extension", MY_OPS, "infer", MODEL],
        ["inspect", MODEL, "--extension", MY_OPS, "--layers"],
        ["check", "--extension", MY_OPS, MODEL],
    ],
    ids=lambda words: " ".join(Path(str(w)).name for w in words),
)
def test_irrun_takes_extensions(words: list[Any], capsys) -> None:
    assert main([str(w) for w in words]) == 0
    shown = capsys.readouterr()
    assert "unknown" not in shown.out + shown.err


@pytest.mark.parametrize(
    ("code", "line", "words"),
    [
        ("x = 1\nx.nothing\n", 2, "AttributeError: 'int' object has no attribute 'nothing'"),
        ("x = 1\ndef f(:\n", 2, "SyntaxError"),
        ("import nowhere_at_all\n", 1, "ModuleNotFoundError"),
        ("from irload import Op\n\nclass Twice(Op, type='ReLU', since=1):\n    pass\n", 3, "AttributeError"),
        ("raise SystemError('no')\n", 1, "SystemError: no"),
    ],
)
def test_faults_of_an_extension_are_reported_with_their_line(code, line, words, tmp_path, capsys) -> None:
    file = tmp_path / "broken.py"
    file.write_text(code, encoding="utf-8")
    with pytest.raises(irload.ReadError, match=re.escape(words)) as caught:
        irload.load_extension(file)
    assert caught.value.where is not None
    assert caught.value.where.line == line
    assert main(["--extension", str(file), str(MODEL)]) == 3
    shown = capsys.readouterr().err
    assert f"broken.py:{line}: the extension fails" in shown
    assert "Traceback" not in shown


@pytest.mark.parametrize(("name", "words"), [("missing.py", "cannot be read"), ("ops.txt", "ends in .py")])
def test_an_invalid_extension_is_rejected(name, words, tmp_path) -> None:
    with pytest.raises(irload.ReadError, match=words):
        irload.load_extension(tmp_path / name)


class Faulty(Op):
    """An operation with one fault, which the attribute `way` selects."""

    way = attr.text(default="")

    def infer(self, x: TensorType) -> Any:
        return {"infer raises": lambda: {}["x"], "infer returns": lambda: "f32"}.get(self.way, lambda: x)()

    def compute(self, x: np.ndarray) -> Any:
        ways = {
            "compute raises": lambda: x.nothing,
            "type": lambda: x.astype(np.int64),
            "shape": lambda: x[:1],
            "count": lambda: (x, x),
        }
        return ways.get(self.way, lambda: x)()


@pytest.mark.parametrize(
    ("way", "words"),
    [
        ("infer raises", "Broken.infer raised KeyError: 'x'"),
        ("infer returns", "Broken.infer must return TensorTypes, found 'f32'"),
        ("compute raises", "Broken.compute raised AttributeError"),
        ("type", r"Broken.compute returned int64\[2,3\] as output 0, its infer f32\[2,3\]".replace(",", ", ?")),
        ("shape", r"Broken.compute returned float32\[1, ?3\]"),
        ("count", "Broken.compute raised ValueError"),
    ],
)
def test_faults_in_an_operation_name_it(way: str, words: str) -> None:
    type("Broken", (Faulty,), {}, type="Broken", opset="custom")
    body = Body(bytearray())
    body.result(body.op("Broken", body.parameter(elements.f32, "2,3"), version="custom", way=way))
    with pytest.raises(irload.ExecutionError, match=words):
        irload.compile_model(irload.read_model(*body.model()))(np.zeros((2, 3), np.float32))


def test_an_operation_must_not_replace_another() -> None:
    resolve("ReLU", "opset1")  # operations are registered on first use
    with pytest.raises(TypeError, match="both register ReLU opset1"):

        class Mine(Op, type="ReLU", since=1):
            def infer(self, x: TensorType) -> TensorType:
                return x

            def compute(self, x: np.ndarray) -> np.ndarray:
                return x


def test_a_later_opset_finds_a_new_variant() -> None:
    class Newer(Op, type="ReLU", since=17):
        def infer(self, x: TensorType) -> TensorType:
            return x

        def compute(self, x: np.ndarray) -> np.ndarray:
            return x + 1

    x = np.array([[-1, 0, 1], [2, 3, 4]], np.float32)
    model = graph(("ReLU", "opset17"))
    assert irload.compile_model(irload.read_model(*model))(x)[0].tolist() == np.maximum(x + 1, 0).tolist()
