"""The errors of `openvino.exceptions`."""

from irload.openvino.errors import OVError, OVTypeError, UserInputError

__all__ = ["OVError", "OVTypeError", "UserInputError"]
