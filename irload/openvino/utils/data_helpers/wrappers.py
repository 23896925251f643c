"""`openvino.utils.data_helpers.wrappers`: the results of inferences, and tensors of files."""

from irload.openvino.helper_functions import tensor_from_file
from irload.openvino.ov_dict import OVDict

__all__ = ["OVDict", "tensor_from_file"]
