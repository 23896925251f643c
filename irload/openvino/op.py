"""`openvino.op`: the operations that are classes."""

from irload.openvino.nodes import Constant, Parameter, Result
from irload.openvino.special import assign, read_value

__all__ = ["Constant", "Parameter", "Result", "assign", "read_value"]
