"""`openvino.tools.ovc`: the converter, which irload does not have."""

from irload.openvino.remote import convert_model

__all__ = ["convert_model"]
