"""The level of the log."""

from __future__ import annotations

from irload.openvino.enums import Choice
from irload.openvino.properties.names import Property


class Level(Choice):
    """The level of the log."""

    NO = -1
    ERR = 0
    WARNING = 1
    INFO = 2
    DEBUG = 3
    TRACE = 4


level = Property("LOG_LEVEL")
