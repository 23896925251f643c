"""Names of hints for GPUs, which irload does not have: setting one is an error."""

from __future__ import annotations

from irload.openvino.properties.hint import Priority as ThrottleLevel
from irload.openvino.properties.names import Property

__all__ = [
    "ThrottleLevel",
    "available_device_mem",
    "enable_lora_operation",
    "host_task_priority",
    "queue_priority",
    "queue_throttle",
]

available_device_mem = Property("AVAILABLE_DEVICE_MEM_SIZE")
enable_lora_operation = Property("GPU_ENABLE_LORA_OPERATION")
host_task_priority = Property("GPU_HOST_TASK_PRIORITY")
queue_priority = Property("GPU_QUEUE_PRIORITY")
queue_throttle = Property("GPU_QUEUE_THROTTLE")
