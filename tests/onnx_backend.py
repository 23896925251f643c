"""ONNX's backend tests through irload: `python -m tests.onnx_backend [WORD…] [--list]`, filtered by WORD.

Each test of an operator (package `onnx`) is converted to IR by OpenVINO, without compression, and run by irload
plainly, by NumPy's plan and by compiled kernels if available. Results must be within the tolerances of the test, unless
OpenVINO exceeds them, too; plans must be equally close to plain execution. Prints a table, and every test that fails
(`--list`: every test). Exits 1 if one did, 4 if onnx is not installed.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import openvino as ov

import irload
from tests.harness.children import Died, in_children, preload
from tests.harness.runtime import array_of, core, tensor

WAYS: Mapping[str, Mapping[str, Any]] = {
    "plain": {"optimize": False, "cache": False},
    "planned": {"jit": False, "cache": False},
    "compiled": {"cache": False},
}
CONFIG = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
RANDOM = ("RandomUniform", "Multinomial")
UNITS = {"float16": 2.0**-10, "bfloat16": 2.0**-7}
SECONDS, MEMORY = 60, 4 << 30
WRONG = ("crash", "differs from ONNX", "all three differ", "plan differs", "plan refuses")
Array = np.ndarray[Any, Any]
Runtime = Callable[[], "list[Array] | str"]
EXPLAINED = {
    "test_div_int32_trunc": "the IR says m_pythondiv, which floors; the CPU plugin truncates",
    "test_bitshift_right_int32_shift_ge_width": "converted to a division by 2^shift, which overflows",
    "test_attention_4d_causal_padded_kv_bf16_expanded": "ReduceMax of −∞ gives the lowest f32, which is −∞ in bf16",
}
"""Differences with their cause: the conversion, OpenVINO, or a documented deviation."""


class Skipped(Exception):
    """A test that cannot be run; the message is its line of the table."""


def collected(words: Sequence[str]) -> list[Any]:
    """ONNX's tests of operators whose names contain one of the words; all without words."""
    from onnx.backend.test.case.node import collect_testcases

    return [t for t in collect_testcases(None) if not words or any(w in t.name for w in words)]


def played(case: Any) -> tuple[str, str]:
    """(line of the table, message) of one test."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            converted = _converted(case, Path(folder))
            inputs, expected = _data(case, converted)
        except Skipped as skipped:
            return str(skipped), ""
        results: dict[str, list[Array] | str] = {}
        for way, options in WAYS.items():
            try:
                compiled = irload.compile_model(Path(folder) / "model.xml", 1, **options)
                results[way] = list(compiled([a.copy() for a in inputs]).values())
            except irload.IRError as error:
                results[way] = f"{type(error).__name__}: {error}"
        return judged(results, expected, lambda: _by_runtime(converted, inputs), case.rtol, case.atol)


def judged(
    outputs: Mapping[str, list[Array] | str], expected: Sequence[Array], runtime: Runtime, rtol: float, atol: float
) -> tuple[str, str]:
    """The line of the table. `runtime` runs the model by OpenVINO; it is called only for results that differ."""
    plain = outputs["plain"]
    for way, results in outputs.items():
        if isinstance(results, str) or isinstance(plain, str):
            if type(results) is not type(plain):
                return "plan refuses", f"plain: {str(plain)[:200]}; {way}: {str(results)[:200]}"
            continue
        words = compared(plain, results, rtol, atol)
        if words and any(a.dtype.name in UNITS for a in plain) and _near(runtime(), results, rtol, atol):
            return "plans as OpenVINO, in f32, plain in 16 bits", f"{way}: {words}"
        if words:
            return "plan differs", f"{way}: {words}"
    if isinstance(plain, str):
        return "irload refuses", plain
    words = compared(expected, plain, rtol, atol)
    if not words:
        return "as ONNX expects", ""
    theirs = runtime()
    if isinstance(theirs, str):
        return "plans as plain; OpenVINO does not run it", words
    if _near(theirs, plain, rtol, atol):
        return "as OpenVINO, not as ONNX", words
    return ("all three differ" if compared(expected, theirs, rtol, atol) else "differs from ONNX"), words


def _near(theirs: list[Array] | str, ours: Sequence[Array], rtol: float, atol: float) -> bool:
    return not isinstance(theirs, str) and not compared(theirs, ours, rtol, atol)


def compared(wanted: Sequence[Array], outputs: Sequence[Array], rtol: float, atol: float) -> str:
    """A description of the first difference; empty for results within the tolerance."""
    if len(wanted) != len(outputs):
        return f"{len(outputs)} results, not {len(wanted)}"
    for k, (a, b) in enumerate(zip(wanted, outputs, strict=True)):
        if a.shape != b.shape:
            return f"result {k}: {list(b.shape)}, not {list(a.shape)}"
        if a.dtype.kind in "OUS" or b.dtype.kind in "OUS":
            if [str(v) for v in a.ravel()] != [str(v) for v in b.ravel()]:
                return f"result {k}: {b.ravel()[:3]}, not {a.ravel()[:3]}"
            continue
        unit = max(UNITS.get(x.dtype.name, 0.0) for x in (a, b))
        x, y = a.astype(np.float64), b.astype(np.float64)
        largest = float(np.abs(x[np.isfinite(x)]).max(initial=0))  # the scale of the terms of a sum with cancellation
        with np.errstate(invalid="ignore"):
            close = np.abs(x - y) <= atol + 1e-6 * largest + max(rtol, 2 * unit) * np.abs(x)
        near = (x == y) | (np.isnan(x) & np.isnan(y)) | close
        if not near.all():
            at = tuple(int(n) for n in np.argwhere(~near)[0])
            return f"result {k}: {int((~near).sum())} of {x.size}, {b[at]} at {list(at)}, not {a[at]}"
    return ""


def _converted(case: Any, folder: Path) -> ov.Model:
    (folder / "model.onnx").write_bytes(case.model.SerializeToString())
    try:
        model = core().read_model(folder / "model.onnx")
        ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
        converted = core().read_model(folder / "model.xml")
    except RuntimeError:
        raise Skipped("not converted by OpenVINO") from None
    if any(op.get_type_name() in RANDOM for op in model.get_ops()):
        raise Skipped("random numbers")
    return converted


def _data(case: Any, model: ov.Model) -> tuple[list[Array], list[Array]]:
    """The inputs in the order of the model's, and the results that ONNX expects."""
    if not case.data_sets:
        raise Skipped("without data")
    inputs, outputs = case.data_sets[0]
    if not all(isinstance(v, np.ndarray | np.generic) for v in (*inputs, *outputs)):
        raise Skipped("sequences or optional values")
    named = dict(zip((i.name for i in case.model.graph.input), inputs, strict=False))
    arrays: list[Array] = []
    for port in model.inputs:
        names = [n for n in named if n in port.get_names()]
        if not names:
            raise Skipped("inputs of other names")
        arrays.append(_as(np.asarray(named[names[0]]), port.get_element_type().get_type_name()))
    return arrays, [np.asarray(v) for v in outputs]


def _as(array: Array, element: str) -> Array:
    """The array in NumPy's type for an element type of OpenVINO."""
    dtype = {"bf16": ml_dtypes.bfloat16, "boolean": np.bool_, "string": np.object_}.get(element)
    return array if dtype is None or array.dtype == dtype else array.astype(dtype)


def _by_runtime(model: ov.Model, inputs: Sequence[Array]) -> list[Array] | str:
    """The results of OpenVINO, or its error."""
    from irload.core.element import element

    try:
        request = core().compile_model(model, "CPU", CONFIG).create_infer_request()
        for k, (port, array) in enumerate(zip(model.inputs, inputs, strict=True)):
            request.set_input_tensor(k, tensor(array, element(port.get_element_type().get_type_name())))
        request.infer()
        return [array_of(request.get_output_tensor(k)) for k in range(len(model.outputs))]
    except Exception as error:
        return str(error)


def main(arguments: Sequence[str]) -> int:
    """Run the tests and print the table. Returns 1 if any failed."""
    try:
        cases = collected([a for a in arguments if not a.startswith("-")])
    except ImportError:
        print("onnx is not installed: pip install onnx", file=sys.stderr)
        return 4
    preload()
    table: Counter[str] = Counter()
    for case, outcome in zip(
        cases, in_children(lambda k: _guarded(cases[k]), len(cases), SECONDS, MEMORY), strict=True
    ):
        line, words = ("crash", str(outcome)) if isinstance(outcome, Died) else outcome
        if line in ("differs from ONNX", "all three differ", "plan differs") and case.name in EXPLAINED:
            line, words = f"{line}, explained", EXPLAINED[case.name]
        table[line] += 1
        if line in WRONG or "--list" in arguments:
            print(f"{case.name}: {line}: {words[:300]}", flush=True)
    print(f"\n{len(cases)} tests")
    for line, n in table.most_common():
        print(f"{n:6}  {line}")
    return int(any(table[line] for line in WRONG))


def _guarded(case: Any) -> tuple[str, str]:
    try:
        return played(case)
    except Exception as error:
        return "crash", f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
