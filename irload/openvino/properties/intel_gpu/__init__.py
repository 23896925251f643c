"""Names of properties of GPUs, which irload does not have: setting one is an error."""

from __future__ import annotations

from irload.openvino.properties.intel_gpu import hint
from irload.openvino.properties.names import Fact, Property

__all__ = [
    "CapabilityGPU",
    "MemoryType",
    "device_max_alloc_mem_size",
    "device_total_mem_size",
    "disable_winograd_convolution",
    "enable_loop_unrolling",
    "execution_units_count",
    "hint",
    "memory_statistics",
    "uarch_version",
]


class MemoryType:
    """Kinds of remote memory."""

    surface = "GPU_SURFACE"
    buffer = "GPU_BUFFER"


class CapabilityGPU:
    """Capabilities of devices."""

    HW_MATMUL = "GPU_HW_MATMUL"
    USM_MEMORY = "GPU_USM_MEMORY"


device_max_alloc_mem_size = Fact("GPU_DEVICE_MAX_ALLOC_MEM_SIZE")
device_total_mem_size = Fact("GPU_DEVICE_TOTAL_MEM_SIZE")
disable_winograd_convolution = Property("GPU_DISABLE_WINOGRAD_CONVOLUTION")
enable_loop_unrolling = Property("GPU_ENABLE_LOOP_UNROLLING")
execution_units_count = Fact("GPU_EXECUTION_UNITS_COUNT")
memory_statistics = Fact("GPU_MEMORY_STATISTICS")
uarch_version = Fact("GPU_UARCH_VERSION")
