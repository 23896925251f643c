"""`openvino.op.util`: variables, and descriptions of the ports of operations with bodies."""

from irload.openvino.descriptions import (
    BodyOutputDescription,
    ConcatOutputDescription,
    InputDescription,
    InvariantInputDescription,
    MergedInputDescription,
    OutputDescription,
    SliceInputDescription,
)
from irload.openvino.variables import Variable, VariableInfo

__all__ = [
    "BodyOutputDescription",
    "ConcatOutputDescription",
    "InputDescription",
    "InvariantInputDescription",
    "MergedInputDescription",
    "OutputDescription",
    "SliceInputDescription",
    "Variable",
    "VariableInfo",
]
