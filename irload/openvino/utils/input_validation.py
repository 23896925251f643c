"""`openvino.utils.input_validation`: checks of attributes of nodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from irload.openvino.errors import UserInputError

__all__ = [
    "assert_list_of_ints",
    "check_valid_attribute",
    "check_valid_attributes",
    "is_non_negative_value",
    "is_positive_value",
]

Condition = Callable[[Any], bool]


def assert_list_of_ints(value_list: Iterable[Any], message: str) -> None:
    """Raise TypeError with the message unless all items are integers."""
    if not all(isinstance(value, int | np.integer) for value in value_list):
        raise TypeError(message)


def is_positive_value(value: Any) -> bool:
    """True for a number above 0."""
    return bool(value > 0)


def is_non_negative_value(value: Any) -> bool:
    """True for a number of at least 0."""
    return bool(value >= 0)


def _check_value(op_name: str, attr_key: str, value: Any, val_type: type, cond: Condition | None = None) -> bool:
    """True for a value of a type that meets a condition. Raises UserInputError otherwise."""
    if not np.issubdtype(type(value), val_type):
        raise UserInputError(f"{op_name}: attribute {attr_key} is of type {val_type.__name__}, found {value!r}")
    if cond is not None and not cond(value):
        raise UserInputError(f"{op_name}: attribute {attr_key} does not accept {value!r}")
    return True


def check_valid_attribute(
    op_name: str,
    attr_dict: Mapping[str, Any],
    attr_key: str,
    val_type: type,
    cond: Condition | None = None,
    required: bool | None = False,
) -> bool:
    """True if an attribute, or each item of it, has the type and meets the condition. Raises UserInputError."""
    value = attr_dict.get(attr_key)
    if value is None:
        if required:
            raise UserInputError(f"{op_name}: the attribute {attr_key} is missing")
        return True
    items = cast("Sequence[Any]", value if isinstance(value, Iterable) and not isinstance(value, str) else [value])
    return all(_check_value(op_name, attr_key, item, val_type, cond) for item in items)


def check_valid_attributes(
    op_name: str, attributes: Mapping[str, Any], requirements: Iterable[tuple[str, bool, type, Condition | None]]
) -> bool:
    """`check_valid_attribute` for rows of name, whether it is required, type and condition."""
    return all(
        check_valid_attribute(op_name, attributes, name, kind, cond, required)
        for name, required, kind, cond in requirements
    )
