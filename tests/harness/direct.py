"""One operation computed on arrays, with all that running it entails but no model around it."""

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
    """The operation with these attributes, given as Python values."""
    return resolve(type, version)[0](**attributes)


def computed(type: str, version: str, *inputs: Any, **attributes: Any) -> list[Array]:
    """The outputs on inputs, which are arrays or pairs (values, element type), after their types were inferred."""
    op = operation(type, version, **attributes)
    given = [_input(i) for i in inputs]
    context: Any = SimpleNamespace(outputs=())
    context.outputs = infer_outputs(op, given, context)
    arrays: Sequence[Array] = [t.value for t in given if t.value is not None]
    results = evaluate(op, arrays, context.outputs, context)
    for result, inferred in zip(results, context.outputs, strict=True):
        assert result.dtype == inferred.element.dtype
        assert inferred.shape.contains(TensorType.of(result, inferred.element).shape)
    return list(results)


def _input(given: Any) -> TensorType:
    if isinstance(given, tuple):
        values, element = given
        assert isinstance(element, ElementType)
        return TensorType.of(np.asarray(values, element.dtype), element)
    return TensorType.of(np.asarray(given))
