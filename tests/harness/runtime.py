"""The OpenVINO runtime as the oracle: its inferred types and its results for a case."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import openvino as ov

from irload.core.element import ElementType
from irload.core.packing import pack
from irload.core.shape import Dim, Shape
from tests.harness.case import Array, Case
from tests.harness.ir import ir_of


@cache
def core() -> ov.Core:
    """The one runtime of the test process, with the tokenizer extension."""
    result = ov.Core()
    result.add_extension(extension_library())
    return result


def extension_library() -> str:
    """The compiled tokenizer extension, found without importing its package, which converts tokenizers."""
    spec = importlib.util.find_spec("openvino_tokenizers")
    assert spec is not None
    assert spec.origin is not None
    return str(next((Path(spec.origin).parent / "lib").glob("*openvino_tokenizers*")))


class Rejected(Exception):
    """OpenVINO rejects the model."""


class NoKernel(Exception):
    """OpenVINO reads the model but cannot execute it."""


def read(case: Case, shapes: Sequence[str | None] | None = None) -> ov.Model:
    """The case as OpenVINO's model. Raises Rejected."""
    xml, weights = ir_of(case, shapes)
    blob = ov.Tensor(np.frombuffer(weights or b"\0", np.uint8))
    try:
        return core().read_model(xml, blob)
    except RuntimeError as error:
        raise Rejected(str(error)) from None


def inferred(model: ov.Model) -> list[tuple[str, Shape]]:
    """(element type, shape) of each model output, as OpenVINO infers it."""
    return [
        (r.input(0).get_element_type().get_type_name(), shape_of(r.input(0).get_partial_shape()))
        for r in model.get_results()
    ]


def shape_of(partial: Any) -> Shape:
    """Our Shape of OpenVINO's PartialShape."""
    if partial.rank.is_dynamic:
        return Shape.unranked()
    return Shape(*(Dim(d.get_min_length(), _upper(d.get_max_length())) for d in partial))


def _upper(limit: int) -> int | None:
    """The upper end of a dim. After a division and a multiplication, OpenVINO represents infinity by a huge number."""
    return None if limit == -1 or limit > 1 << 53 else limit


def outputs(case: Case, model: ov.Model | None = None) -> list[Array]:
    """OpenVINO's results. Raises Rejected or NoKernel."""
    model = model or read(case)
    tries = {"both": ("reference", "cpu"), "cpu-first": ("cpu", "reference")}.get(case.oracle, (case.oracle,))
    failures: list[str] = []
    for name in tries:
        try:
            return ORACLES[name](model, case)
        except NoKernel as error:
            failures.append(str(error))
    raise NoKernel(" / ".join(failures))


def _reference(model: ov.Model, case: Case) -> list[Array]:
    inputs = [tensor(i.value, i.element) for i in case.inputs if not i.constant]
    results = [ov.Tensor(r.get_element_type(), ov.Shape([])) for r in model.get_results()]
    try:
        done = model.evaluate(results, inputs)
    except RuntimeError as error:
        raise NoKernel(f"reference: {error}") from None
    if not done:
        raise NoKernel("reference: not implemented")
    return [array_of(t) for t in results]


def _cpu(model: ov.Model, case: Case) -> list[Array]:
    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1, "ENABLE_MMAP": False}
    try:
        request = core().compile_model(model, "CPU", config).create_infer_request()
        for k, operand in enumerate(i for i in case.inputs if not i.constant):
            request.set_input_tensor(k, tensor(operand.value, operand.element))
        request.infer()
    except RuntimeError as error:
        raise NoKernel(f"CPU: {error}") from None
    return [array_of(request.get_output_tensor(k)) for k in range(len(model.outputs))]


ORACLES = {"reference": _reference, "cpu": _cpu}
"""OpenVINO's two implementations: the reference kernels, and the CPU plugin at f32."""


def tensor(value: Array, element: ElementType) -> ov.Tensor:
    """OpenVINO's tensor of one of our arrays."""
    if element.name == "string":
        return ov.Tensor(value.astype(str))
    ov_type = getattr(ov.Type, element.name)
    result = ov.Tensor(ov_type, ov.Shape(value.shape))
    if value.size:
        raw = np.frombuffer(pack(value, element), np.uint8)
        np.ndarray(result.byte_size, np.uint8, _buffer(result))[: raw.size] = raw
    return result


def _buffer(t: ov.Tensor) -> Any:
    return np.ctypeslib.as_array((__import__("ctypes").c_uint8 * t.byte_size).from_address(t.data.ctypes.data))


def array_of(t: ov.Tensor) -> Array:
    """Our array of one of OpenVINO's tensors."""
    name = t.get_element_type().get_type_name()
    shape = tuple(t.get_shape())
    if name == "string":
        return np.asarray(t.str_data).astype(object).reshape(shape)
    if name == "boolean":
        return t.data.astype(bool).reshape(shape)
    if name == "bf16":
        return t.data.view(ml_dtypes.bfloat16).reshape(shape).copy()
    if name.startswith("f8") or name in ("f4e2m1", "nf4", "i4", "u4", "u2", "u3", "u6", "u1"):
        from irload.core import element as et
        from irload.core.packing import unpack

        raw = np.array(_buffer(t)) if t.byte_size else np.zeros(0, np.uint8)
        return unpack(raw, et.element(name), shape).copy()
    return np.array(t.data).reshape(shape)
