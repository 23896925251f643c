"""Names of OpenVINO that irload does not implement: using one raises Unsupported."""

from __future__ import annotations

from typing import Any

from irload.openvino.errors import not_here, unsupported

__all__ = [
    "Extension",
    "FrontEnd",
    "FrontEndManager",
    "GroupQueryAttentionExtension",
    "OpExtension",
    "PagedAttentionExtension",
    "RemoteContext",
    "RemoteTensor",
    "VAContext",
    "VASurfaceTensor",
    "convert_model",
]


class Extension:
    """Base of extensions that irload can load: see `OpExtension`."""


class OpExtension(Extension):
    """The registration of an operation written in Python."""

    def __init__(self, operation: Any) -> None:
        self.operation = operation


class _NotHere:
    feature = "this class"

    def __init__(self, *_: Any, **__: Any) -> None:
        unsupported(self.feature, "use the OpenVINO runtime for it")


class RemoteTensor(_NotHere):
    """Memory of other devices, which irload does not have."""

    feature = "remote memory"


class RemoteContext(RemoteTensor):
    """A context of other devices, which irload does not have."""


class VAContext(RemoteTensor):
    """A context of VA-API, which irload does not have."""


class VASurfaceTensor(RemoteTensor):
    """A surface of VA-API, which irload does not have."""


class FrontEnd(_NotHere):
    """A reader of another format, which irload does not have."""

    feature = "reading other formats than IR"


class FrontEndManager(FrontEnd):
    """The readers of other formats, which irload does not have."""


class GroupQueryAttentionExtension(_NotHere, Extension):
    """An operation of OpenVINO outside its opsets, which irload does not have."""

    feature = "the operation GroupQueryAttention"


class PagedAttentionExtension(_NotHere, Extension):
    """An operation of OpenVINO outside its opsets, which irload does not have."""

    feature = "the operation PagedAttentionExtension"


convert_model = not_here("conversion of models")
