"""Properties of the selection of devices."""

from __future__ import annotations

from irload.openvino.enums import Choice
from irload.openvino.properties.names import Property


class SchedulePolicy(Choice):
    """How requests are distributed among devices."""

    ROUND_ROBIN = 0
    DEVICE_PRIORITY = 1
    DEFAULT = 1


device_bind_buffer = Property("DEVICE_BIND_BUFFER")
devices_utilization_threshold = Property("DEVICES_UTILIZATION_THRESHOLD")
enable_runtime_fallback = Property("ENABLE_RUNTIME_FALLBACK")
enable_startup_fallback = Property("ENABLE_STARTUP_FALLBACK")
low_power_device = Property("LOW_POWER_DEVICE")
perf_curve_table = Property("PERF_CURVE_TABLE")
schedule_policy = Property("SCHEDULE_POLICY")
