"""Computes one operation on arrays, including inference and checks, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from irload.core.element import ElementType
from irload.core.op import evaluate, infer_outputs
from irload.core.tensor import Array, TensorType
from irload.ops.registry import resolve


def operation(type: str, version: str, **attributes: Any) -> Any:
    """An instance of the operation; attributes are given as Python values."""
    return resolve(type, version)[0](**attributes)


def computed(type: str, version: str, *inputs: Any, **attributes: Any) -> list[Array]:
    """Infers and computes an operation; an input is an array or a pair (values, element type)."""
    op = operation(type, version, **attributes)
    values = [_input(i) for i in inputs]
    context: Any = SimpleNamespace(outputs=())
    context.outputs = infer_outputs(op, values, context)
    arrays: Sequence[Array] = [t.value for t in values if t.value is not None]
    results = evaluate(op, arrays, context.outputs, context)
    for result, inferred in zip(results, context.outputs, strict=True):
        assert result.dtype == inferred.element.dtype
        assert inferred.shape.contains(TensorType.of(result, inferred.element).shape)
    return list(results)


def _input(operand: Any) -> TensorType:
    if isinstance(operand, tuple):
        values, element = operand
        assert isinstance(element, ElementType)
        return TensorType.of(np.asarray(values, element.dtype), element)
    return TensorType.of(np.asarray(operand))
