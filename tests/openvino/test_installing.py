"""`install`: libraries that import openvino get irload; unsupported features raise one error."""

from __future__ import annotations

import subprocess
import sys

import pytest

import irload.openvino as irov
from tests.openvino.both import DIGITS, IMAGE

LIBRARY = """
import importlib.metadata, importlib.util, sys
import irload.openvino
irload.openvino.install()
assert importlib.util.find_spec("openvino") is not None
import openvino as ov
import openvino.properties.hint as hint
import openvino.properties as props
from openvino import Core, Type, Layout, PartialShape, AsyncInferQueue, Tensor, opset8
from openvino.runtime import Core as Old, opset13
from openvino.runtime.opset8 import relu
from openvino.opset13 import add
from openvino.op import Parameter
from openvino.utils import replace_node
from openvino._pyopenvino import ConstOutput
from openvino._pyopenvino.op import Constant
from openvino._pyopenvino.util import deprecation_warning
from openvino._offline_transformations import apply_moc_transformations
from openvino.tools.ovc import convert_model
assert Core is Old is irload.openvino.Core is ov._pyopenvino.Core and ov is irload.openvino
assert hint.performance_mode() == "PERFORMANCE_HINT"
assert opset8.relu.__name__ == relu.__name__ == "relu"
assert irload.openvino.__spec__.name == "irload.openvino" == irload.openvino.__name__
import numpy as np
compiled = ov.compile_model(sys.argv[1])
print(compiled(np.load(sys.argv[2]))[0].argmax(), *ov.__version__.split("-")[:2])
irload.openvino.install()
"""


def run(code, *arguments):
    process = subprocess.run([sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True)
    assert process.returncode == 0, process.stderr
    return process.stdout


def test_libraries_import_irload_as_openvino():
    assert run(LIBRARY, DIGITS, IMAGE) == "7 2026.4.0 0\n"  # digit, version and build number


def test_the_version_is_known_where_there_is_no_wheel():
    code = (
        "import irload.openvino.installing as i; i._has_wheel = lambda: False; i.install()\n"
        "import importlib.metadata as m; print([d.version for d in i._Finder().find_distributions()])"
    )
    assert run(code) == "['2026.4.0']\n"


def test_the_imported_runtime_is_not_replaced():
    with pytest.raises(RuntimeError, match="openvino has been imported"):
        irov.install()


def test_importing_is_cheap_and_irrun_does_not_import_it():
    probe = "import sys, irload.openvino; print(*sys.modules)"
    loaded = run(probe).split()
    assert "irload.openvino" in loaded
    assert not {"numpy", "lxml", "irload.openvino.core", "concurrent.futures"} & set(loaded)
    probe = (
        f"import sys; from irrun.main import main\ntry: main(['inspect', {str(DIGITS)!r}])\nexcept SystemExit: pass\n"
    )
    out = run(probe + "print([m for m in sys.modules if m.startswith('irload.openvino')])")
    assert out.splitlines()[-1] == "[]"


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: irov.compile_model(DIGITS, "GPU"), "device 'GPU'; compile the model for CPU"),
        (lambda: irov.Core().read_model("model.onnx"), "files of .onnx"),
        (lambda: irov.convert_model("model.onnx"), "conversion of models"),
        (lambda: irov.RemoteTensor(), "remote memory"),
        (lambda: irov.FrontEndManager(), "other formats"),
        (lambda: irov.op._GroupQueryAttentionExtension(), "the operation GroupQueryAttention"),
        (lambda: irov.compile_model(DIGITS).set_property({"PERF_COUNT": True}), "pass them to compile_model"),
        (lambda: irov.Core().create_context("CPU", {}), "remote memory"),
        (lambda: irov.Core().add_extension("libsomething.so"), "docs/extensions.md"),
    ],
)
def test_unsupported_corners_raise_one_error(action, words):
    with pytest.raises(NotImplementedError, match=words) as raised:
        action()
    assert isinstance(raised.value, irov.errors.Unsupported)
    assert isinstance(raised.value, RuntimeError)


def test_wrong_properties_are_refused():
    with pytest.raises(RuntimeError, match="Unsupported property FOO"):
        irov.compile_model(DIGITS, "CPU", {"FOO": 1})
    with pytest.raises(RuntimeError, match="wrong value 'FAST' for property PERFORMANCE_HINT: expected one of LATENCY"):
        irov.compile_model(DIGITS, "CPU", {"PERFORMANCE_HINT": "FAST"})
    with pytest.raises(RuntimeError, match="it cannot be set"):
        irov.Core().set_property("CPU", {"FULL_DEVICE_NAME": "mine"})
