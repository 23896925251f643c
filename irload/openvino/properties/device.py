"""Properties of devices."""

from __future__ import annotations

from irload.openvino.enums import Choice
from irload.openvino.properties.names import DeviceList, Fact, Property, TextProperty


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


architecture = Fact("DEVICE_ARCHITECTURE")
capabilities = Fact("OPTIMIZATION_CAPABILITIES")
full_name = Fact("FULL_DEVICE_NAME")
gops = Fact("DEVICE_GOPS")
id = TextProperty("DEVICE_ID")
luid = Fact("DEVICE_LUID")
pci_info = Fact("DEVICE_PCI_INFO")
priorities = DeviceList("MULTI_DEVICE_PRIORITIES")
properties = Property("DEVICE_PROPERTIES")
thermal = Fact("DEVICE_THERMAL")
type = Fact("DEVICE_TYPE")
uuid = Fact("DEVICE_UUID")
