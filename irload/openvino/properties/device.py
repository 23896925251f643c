"""Properties of devices."""

from __future__ import annotations

from irload.openvino.enums import Choice
from irload.openvino.properties.names import Property


class Type(Choice):
    """The kind of device."""

    INTEGRATED = 0
    DISCRETE = 1


class Capability:
    """Names of capabilities."""

    BF16 = "BF16"
    BIN = "BIN"
    EXPORT_IMPORT = "EXPORT_IMPORT"
    FP16 = "FP16"
    FP32 = "FP32"
    INT16 = "INT16"
    INT8 = "INT8"
    WINOGRAD = "WINOGRAD"


architecture = Property("DEVICE_ARCHITECTURE")
capabilities = Property("OPTIMIZATION_CAPABILITIES")
full_name = Property("FULL_DEVICE_NAME")
gops = Property("DEVICE_GOPS")
id = Property("DEVICE_ID")
luid = Property("DEVICE_LUID")
pci_info = Property("DEVICE_PCI_INFO")
priorities = Property("MULTI_DEVICE_PRIORITIES")
properties = Property("DEVICE_PROPERTIES")
thermal = Property("DEVICE_THERMAL")
type = Property("DEVICE_TYPE")
uuid = Property("DEVICE_UUID")
