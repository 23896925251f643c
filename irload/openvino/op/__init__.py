"""`openvino.op`: the operations that are classes."""

from irload.openvino.bodies import if_op, loop, tensor_iterator
from irload.openvino.nodes import Constant, Parameter, Result
from irload.openvino.op import util
from irload.openvino.remote import GroupQueryAttentionExtension as _GroupQueryAttentionExtension
from irload.openvino.remote import PagedAttentionExtension as _PagedAttentionExtension
from irload.openvino.special import assign, read_value

__all__ = [
    "Constant",
    "Parameter",
    "Result",
    "_GroupQueryAttentionExtension",
    "_PagedAttentionExtension",
    "assign",
    "if_op",
    "loop",
    "read_value",
    "tensor_iterator",
    "util",
]
