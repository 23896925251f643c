"""A case: one operation with attributes and inputs, from which its IR text and all checks are derived."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from irload.core.element import ElementType, element_of_dtype

Array = np.ndarray[Any, Any]
Random = np.random.Generator


@dataclass(frozen=True)
class Input:
    """One input of a case. A `constant` one becomes a Const of the model, any other a Parameter."""

    value: Array
    element: ElementType
    constant: bool = False
    static_shape: bool = False
    """The shape stays static in dynamic variants of the case."""


def param(value: Any, element: ElementType | None = None) -> Input:
    """An input fed at run time."""
    array = np.asarray(value, None if element is None else element.dtype)
    return Input(array, element or element_of_dtype(array.dtype), False)


def const(value: Any, element: ElementType | None = None) -> Input:
    """An input stored as a constant of the model. Plain lists of integers become i64."""
    array = np.asarray(value, None if element is None else element.dtype)
    return Input(array, element or element_of_dtype(array.dtype), True)


@dataclass(frozen=True)
class Case:
    """One operation, its attributes as XML text, its inputs, and how its outputs are compared with OpenVINO's.

    `oracle`: "reference" (Model.evaluate), "cpu" (the CPU plugin at f32), "both" to try the reference first and the CPU
    where it has no kernel (the default), or "none" for operations that no runtime executes, which have `expected`.
    `rtol` and `atol` bound the difference. For control flow, `xml` has the bodies and port maps
    (tests/harness/body.py), and `weights` the constants of the bodies, which come first in the .bin.
    """

    type: str
    version: str
    inputs: Sequence[Input]
    attributes: Mapping[str, Any] = field(default_factory=dict[str, Any])
    outputs: int = 1
    oracle: str = "both"
    rtol: float = 1e-5
    atol: float = 1e-5
    expected: Sequence[Any] | None = None
    xml: str = ""
    weights: bytes = b""
    compare: Callable[[Sequence[Array], Sequence[Array]], bool] | None = None
    """Replaces the elementwise comparison if the order or padding of outputs is unspecified: (ours, theirs) → agree."""
    inconsistent_shapes: bool = False
    """True if OpenVINO's results contradict its inferred shapes. irload's must then only be compatible."""

    @property
    def row(self) -> tuple[str, str]:
        """The row of the operation table that this case exercises."""
        return self.type, self.version

    def __str__(self) -> str:
        shapes = ", ".join(f"{'const ' if i.constant else ''}{i.element}{list(i.value.shape)}" for i in self.inputs)
        attributes = ", ".join(f"{k}={text(v)}" for k, v in self.attributes.items())
        return f"{self.type}-{self.version}({shapes}; {attributes})"


def text(value: Any) -> str:
    """The XML text of an attribute given as a Python value."""
    if isinstance(value, bool | np.bool_):
        return "true" if value else "false"
    if isinstance(value, ElementType):
        return value.name
    if isinstance(value, list | tuple):
        return ",".join(text(v) for v in value)
    return str(value)


Generator = Callable[[Random], Case]
GENERATORS: dict[tuple[str, str], list[Generator]] = {}
"""The random-case generators of each row of the operation table."""


def cases(type: str, *versions: str) -> Callable[[Callable[..., Case]], Callable[..., Case]]:
    """Register `function(rng, version)` as the generator of random cases for these rows: `@cases("Pad", "opset1")`."""

    def register(function: Callable[..., Case]) -> Callable[..., Case]:
        for version in versions:
            GENERATORS.setdefault((type, version), []).append(lambda rng, v=version: function(rng, v))
        return function

    return register
