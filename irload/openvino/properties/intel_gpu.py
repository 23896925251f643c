"""Names of properties of GPUs, which irload does not have: setting one is an error."""

from __future__ import annotations

from irload.openvino.properties.names import Property

device_max_alloc_mem_size = Property("GPU_DEVICE_MAX_ALLOC_MEM_SIZE")
device_total_mem_size = Property("GPU_DEVICE_TOTAL_MEM_SIZE")
disable_winograd_convolution = Property("GPU_DISABLE_WINOGRAD_CONVOLUTION")
enable_loop_unrolling = Property("GPU_ENABLE_LOOP_UNROLLING")
execution_units_count = Property("GPU_EXECUTION_UNITS_COUNT")
memory_statistics = Property("GPU_MEMORY_STATISTICS")
uarch_version = Property("GPU_UARCH_VERSION")
