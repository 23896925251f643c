"""Properties of the processor."""

from __future__ import annotations

from irload.openvino.enums import Choice
from irload.openvino.properties.names import Property


class TbbPartitioner(Choice):
    """How work is divided among threads."""

    STATIC = 1
    AUTO = 2


denormals_optimization = Property("CPU_DENORMALS_OPTIMIZATION")
sparse_weights_decompression_rate = Property("CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE")
tbb_partitioner = Property("TBB_PARTITIONER")
