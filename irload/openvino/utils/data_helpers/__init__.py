"""`openvino.utils.data_helpers`: the results of inferences, and tensors of files."""

from irload.openvino.utils.data_helpers.wrappers import OVDict, tensor_from_file

__all__ = ["OVDict", "tensor_from_file"]
