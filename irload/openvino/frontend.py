"""`openvino.frontend`: readers of other formats, which irload does not have."""

from irload.openvino.remote import FrontEnd, FrontEndManager

__all__ = ["FrontEnd", "FrontEndManager"]
