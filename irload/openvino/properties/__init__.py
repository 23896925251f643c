"""Names of properties: `hint.performance_mode()` is the name, `hint.performance_mode(value)` a pair for a config."""

from __future__ import annotations

from irload.openvino.enums import Choice
from irload.openvino.properties import device, hint, intel_auto, intel_cpu, intel_gpu, intel_npu, log, streams
from irload.openvino.properties.names import Fact, Property, TextProperty

__all__ = [
    "CacheMode",
    "CompatibilityCheck",
    "WorkloadType",
    "device",
    "hint",
    "intel_auto",
    "intel_cpu",
    "intel_gpu",
    "intel_npu",
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
available_devices = Fact("AVAILABLE_DEVICES")
cache_dir = TextProperty("CACHE_DIR")
cache_encryption_callbacks = Property("CACHE_ENCRYPTION_CALLBACKS")
cache_mode = Property("CACHE_MODE")
compatibility_check = Fact("COMPATIBILITY_CHECK")
compilation_num_threads = Property("COMPILATION_NUM_THREADS")
enable_mmap = Property("ENABLE_MMAP")
enable_profiling = Property("PERF_COUNT")
enable_weightless = Property("ENABLE_WEIGHTLESS")
execution_devices = Fact("EXECUTION_DEVICES")
force_tbb_terminate = Property("FORCE_TBB_TERMINATE")
inference_num_threads = Property("INFERENCE_NUM_THREADS")
key_cache_group_size = Property("KEY_CACHE_GROUP_SIZE")
key_cache_precision = Property("KEY_CACHE_PRECISION")
loaded_from_cache = Fact("LOADED_FROM_CACHE")
max_batch_size = Fact("MAX_BATCH_SIZE")
model_name = Fact("NETWORK_NAME")
num_streams = Property("NUM_STREAMS")
optimal_batch_size = Fact("OPTIMAL_BATCH_SIZE")
optimal_number_of_infer_requests = Fact("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
range_for_async_infer_requests = Fact("RANGE_FOR_ASYNC_INFER_REQUESTS")
range_for_streams = Fact("RANGE_FOR_STREAMS")
runtime_requirements = Fact("RUNTIME_REQUIREMENTS")
supported_properties = Fact("SUPPORTED_PROPERTIES")
value_cache_group_size = Property("VALUE_CACHE_GROUP_SIZE")
value_cache_precision = Property("VALUE_CACHE_PRECISION")
weights_path = TextProperty("WEIGHTS_PATH")
workload_type = Property("WORKLOAD_TYPE")
