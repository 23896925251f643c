"""Names of properties: `hint.performance_mode()` is the name, `hint.performance_mode(value)` a pair for a config."""

from __future__ import annotations

from irload.openvino.enums import Choice
from irload.openvino.properties import device, hint, intel_auto, intel_cpu, intel_gpu, log, streams
from irload.openvino.properties.names import Property

__all__ = [
    "CacheMode",
    "CompatibilityCheck",
    "WorkloadType",
    "device",
    "hint",
    "intel_auto",
    "intel_cpu",
    "intel_gpu",
    "log",
    "streams",
]


class CacheMode(Choice):
    """Whether cached models are small or load fast."""

    OPTIMIZE_SIZE = 0
    OPTIMIZE_SPEED = 1


class WorkloadType(Choice):
    """The priority of inferences."""

    DEFAULT = 0
    EFFICIENT = 1


class CompatibilityCheck(Choice):
    """Whether an exported model can be imported."""

    NOT_APPLICABLE = 0
    SUPPORTED = 1
    UNSUPPORTED = 2


auto_batch_timeout = Property("AUTO_BATCH_TIMEOUT")
available_devices = Property("AVAILABLE_DEVICES")
cache_dir = Property("CACHE_DIR")
cache_encryption_callbacks = Property("CACHE_ENCRYPTION_CALLBACKS")
cache_mode = Property("CACHE_MODE")
compatibility_check = Property("COMPATIBILITY_CHECK")
compilation_num_threads = Property("COMPILATION_NUM_THREADS")
enable_mmap = Property("ENABLE_MMAP")
enable_profiling = Property("PERF_COUNT")
enable_weightless = Property("ENABLE_WEIGHTLESS")
execution_devices = Property("EXECUTION_DEVICES")
force_tbb_terminate = Property("FORCE_TBB_TERMINATE")
inference_num_threads = Property("INFERENCE_NUM_THREADS")
key_cache_group_size = Property("KEY_CACHE_GROUP_SIZE")
key_cache_precision = Property("KEY_CACHE_PRECISION")
loaded_from_cache = Property("LOADED_FROM_CACHE")
max_batch_size = Property("MAX_BATCH_SIZE")
model_name = Property("NETWORK_NAME")
num_streams = Property("NUM_STREAMS")
optimal_batch_size = Property("OPTIMAL_BATCH_SIZE")
optimal_number_of_infer_requests = Property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
range_for_async_infer_requests = Property("RANGE_FOR_ASYNC_INFER_REQUESTS")
range_for_streams = Property("RANGE_FOR_STREAMS")
runtime_requirements = Property("RUNTIME_REQUIREMENTS")
supported_properties = Property("SUPPORTED_PROPERTIES")
value_cache_group_size = Property("VALUE_CACHE_GROUP_SIZE")
value_cache_precision = Property("VALUE_CACHE_PRECISION")
weights_path = Property("WEIGHTS_PATH")
workload_type = Property("WORKLOAD_TYPE")
