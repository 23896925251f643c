"""The properties of devices and compiled models, and the options of irload that they set."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from irload.openvino.enums import Choice
from irload.openvino.errors import OpenVINOError, unsupported
from irload.openvino.properties import device, hint, intel_cpu, log
from irload.openvino.rt_info import plain
from irload.openvino.types import Type, element_of, type_of
from irload.options import CompileOptions
from irload.system.machine import processor, processors, thread_count

__all__ = ["DEVICES", "PropertyValues", "device_of"]

DEVICES = ("CPU", "AUTO", "HETERO", "MULTI", "BATCH")
"""Devices that a model can be compiled for; all of them run on the processor."""


def _bool(value: Any) -> bool:
    text = str(value).upper()
    if text not in ("TRUE", "FALSE", "YES", "NO", "1", "0"):
        raise ValueError(f"expected true or false, found {value!r}")
    return text in ("TRUE", "YES", "1")


def _natural(value: Any) -> int:
    number = int(value)
    if number < 0:
        raise ValueError(f"expected a number of at least 0, found {value!r}")
    return number


def _folder(value: Any) -> str:
    """The path of a folder, which is created: scripts list or delete it, though irload's cache is in another folder."""
    if str(value):
        os.makedirs(value, exist_ok=True)
    return str(value)


def _streams(value: Any) -> int:
    """The number of streams, −1 for as many as there are processors."""
    text = str(value).upper()
    return -1 if text in ("AUTO", "-1", "NUMA", "-2") else _natural(value)


def _type(value: Any) -> Type:
    if isinstance(value, Type):
        return value
    named = getattr(Type, str(value).lower(), None)
    return named if isinstance(named, Type) else type_of(element_of(value))


def _architecture() -> str:
    import platform

    return {"x86_64": "intel64", "AMD64": "intel64"}.get(platform.machine(), platform.machine())


def _log_level(value: Any) -> Choice:
    """A level, also by OpenVINO's texts: `LOG_NONE`, `LOG_ERROR`, `LOG_WARNING` …."""
    name = str(value).removeprefix("LOG_")
    return log.Level.parse({"NONE": "NO", "ERROR": "ERR"}.get(name, name) if isinstance(value, str) else value)


def _choice(cls: type[Choice]) -> Callable[[Any], Choice]:
    return cls.parse


@dataclass(frozen=True, slots=True, eq=False)
class Setting:
    """A property that can be set: its initial value, and the function that checks a new one."""

    initial: Any
    read: Callable[[Any], Any]


SETTINGS: Mapping[str, Setting] = {
    "NUM_STREAMS": Setting(1, _streams),
    "INFERENCE_NUM_THREADS": Setting(0, _natural),
    "PERF_COUNT": Setting(False, _bool),
    "INFERENCE_PRECISION_HINT": Setting(Type.f32, _type),
    "PERFORMANCE_HINT": Setting(hint.PerformanceMode.LATENCY, _choice(hint.PerformanceMode)),
    "EXECUTION_MODE_HINT": Setting(hint.ExecutionMode.PERFORMANCE, _choice(hint.ExecutionMode)),
    "PERFORMANCE_HINT_NUM_REQUESTS": Setting(0, _natural),
    "CACHE_DIR": Setting("", _folder),
    "CACHE_ENCRYPTION_CALLBACKS": Setting((), tuple),
    "ENABLE_MMAP": Setting(False, _bool),
    # Recorded without an effect: irload has no such option, and the results do not depend on it.
    "CACHE_MODE": Setting("OPTIMIZE_SPEED", lambda value: getattr(value, "name", value)),
    "ENABLE_CPU_PINNING": Setting(True, _bool),
    "ENABLE_CPU_RESERVATION": Setting(False, _bool),
    "ENABLE_HYPER_THREADING": Setting(True, _bool),
    "ENABLE_TENSOR_PARALLEL": Setting(False, _bool),
    "SCHEDULING_CORE_TYPE": Setting(hint.SchedulingCoreType.ANY_CORE, _choice(hint.SchedulingCoreType)),
    "MODEL_DISTRIBUTION_POLICY": Setting(frozenset[Any](), set),
    "MODEL_PRIORITY": Setting(hint.Priority.MEDIUM, _choice(hint.Priority)),
    "TBB_PARTITIONER": Setting(intel_cpu.TbbPartitioner.STATIC, _choice(intel_cpu.TbbPartitioner)),
    "CPU_DENORMALS_OPTIMIZATION": Setting(False, _bool),
    "CPU_SPARSE_WEIGHTS_DECOMPRESSION_RATE": Setting(1.0, float),
    "DYNAMIC_QUANTIZATION_GROUP_SIZE": Setting(32, _natural),
    "KV_CACHE_PRECISION": Setting(Type.u8, _type),
    "KEY_CACHE_PRECISION": Setting(Type.u8, _type),
    "VALUE_CACHE_PRECISION": Setting(Type.u8, _type),
    "KEY_CACHE_GROUP_SIZE": Setting(0, _natural),
    "VALUE_CACHE_GROUP_SIZE": Setting(0, _natural),
    "ENABLE_WEIGHTLESS": Setting(False, _bool),
    "WEIGHTS_PATH": Setting("", str),
    "ALLOW_AUTO_BATCHING": Setting(True, _bool),
    "AUTO_BATCH_TIMEOUT": Setting(0, _natural),
    "COMPILATION_NUM_THREADS": Setting(0, _natural),
    "FORCE_TBB_TERMINATE": Setting(False, _bool),
    "DEVICE_ID": Setting("", str),
    "LOG_LEVEL": Setting(log.Level.NO, _log_level),
}
"""The properties that can be set, by name."""

FACTS: Mapping[str, Callable[[], Any]] = {
    "AVAILABLE_DEVICES": lambda: [""],
    "RANGE_FOR_ASYNC_INFER_REQUESTS": lambda: (1, 1, 1),
    "RANGE_FOR_STREAMS": lambda: (1, processors()),
    "EXECUTION_DEVICES": lambda: ["CPU"],
    "FULL_DEVICE_NAME": processor,
    "OPTIMIZATION_CAPABILITIES": lambda: ["FP32", "INT8", "BIN", "EXPORT_IMPORT"],
    "DEVICE_TYPE": lambda: device.Type.INTEGRATED,
    "DEVICE_ARCHITECTURE": _architecture,
}
"""The properties of the processor, which cannot be set."""

_ONLY_COMPILED = ("NETWORK_NAME", "OPTIMAL_NUMBER_OF_INFER_REQUESTS", "EXECUTION_DEVICES", "LOADED_FROM_CACHE")
_NOT_COMPILED = (
    *("DEVICE_ID", "CACHE_DIR", "CACHE_ENCRYPTION_CALLBACKS", "CACHE_MODE", "ENABLE_MMAP", "WEIGHTS_PATH"),
    "FORCE_TBB_TERMINATE",
)

_AS_TEXT: Mapping[str, Callable[[Any], str]] = {
    "PERFORMANCE_HINT": lambda value: value.name,
    "PERFORMANCE_HINT_NUM_REQUESTS": str,
    "PERF_COUNT": lambda value: "YES" if value else "NO",
}
"""The properties of which OpenVINO's compiled models return texts."""


def device_of(name: str) -> str:
    """The device of a name such as `CPU`, `AUTO:CPU` or `HETERO:CPU`. Raises Unsupported for other devices."""
    first, _, rest = str(name).partition(":")
    listed = [item.partition("(")[0].lstrip("-") for item in rest.split(",") if item]
    if first.partition(".")[0] not in DEVICES or (listed and not any(i.partition(".")[0] == "CPU" for i in listed)):
        unsupported(f"device '{name}'", "compile the model for CPU")
    return first


class PropertyValues:
    """The properties of one device, or of one compiled model. Raises RuntimeError for unknown names and values."""

    def __init__(self, device_name: str, given: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> None:
        self.device = device_of(device_name)
        self._set: dict[str, Any] = dict(defaults or {})
        for name, value in given.items():
            self.set(name, value)

    def set(self, name: str, value: Any) -> None:
        """Set a property."""
        name, value = str(name), plain(value)
        if name == "DEVICE_PROPERTIES":
            for key, inner in cast("Mapping[str, Any]", value).items():
                for item, setting in cast("Mapping[str, Any]", inner).items() if str(key) == "CPU" else ():
                    self.set(item, setting)
            return
        if name == "MULTI_DEVICE_PRIORITIES":
            device_of(f"AUTO:{value}")
            return
        setting = SETTINGS.get(name)
        if setting is None:
            hidden = "it cannot be set" if name in FACTS else "it is unknown"
            raise OpenVINOError(f"Unsupported property {name} by CPU plugin: {hidden}")
        try:
            self._set[name] = setting.read(value)
        except (ValueError, TypeError) as error:
            raise OpenVINOError(f"wrong value {value!r} for property {name}: {error}") from None

    def get(self, name: str) -> Any:
        """A property of the device."""
        if name == "SUPPORTED_PROPERTIES":
            facts: dict[str, str] = {"SUPPORTED_PROPERTIES": "RO", **dict.fromkeys(FACTS, "RO")}
            return {**facts, **dict.fromkeys(SETTINGS, "RW")}
        if name in FACTS:
            return FACTS[name]()
        if name in ("NUM_STREAMS", "OPTIMAL_NUMBER_OF_INFER_REQUESTS"):
            return self.streams
        if name not in SETTINGS:
            raise OpenVINOError(f"Cannot get unsupported property: {name}")
        value = self._set.get(name, SETTINGS[name].initial)
        return set(cast("frozenset[Any]", value)) if isinstance(value, frozenset) else value

    def compiled_property(self, name: str, model: str, threads: int) -> Any:
        """A property of a model compiled with this configuration."""
        values = {
            "NETWORK_NAME": model,
            "OPTIMAL_NUMBER_OF_INFER_REQUESTS": self.streams,
            "INFERENCE_NUM_THREADS": threads * self.streams,
            "EXECUTION_DEVICES": ["CPU"],
            "LOADED_FROM_CACHE": False,
        }
        if name == "SUPPORTED_PROPERTIES":
            known = (name, *_ONLY_COMPILED, *(s for s in SETTINGS if s not in _NOT_COMPILED))
            return dict.fromkeys(known, "RO")
        if name in values:
            return values[name]
        if name not in SETTINGS:
            raise OpenVINOError(f"Unsupported property: {name}")
        return _AS_TEXT.get(name, lambda value: value)(self.get(name))

    # -- their meaning for irload ------------------------------------------------------------------------------------

    @property
    def profiles(self) -> bool:
        """True if requests measure their steps."""
        return self.get("PERF_COUNT")

    @property
    def caches(self) -> bool:
        """True if plans of files are cached."""
        return bool(self.get("CACHE_DIR"))

    @property
    def streams(self) -> int:
        """The number of inferences that run at the same time."""
        number = self._set.get("NUM_STREAMS")
        if number is None:
            mode = self.get("PERFORMANCE_HINT")
            if mode is hint.PerformanceMode.LATENCY:
                return 1
            requests = self.get("PERFORMANCE_HINT_NUM_REQUESTS")
            return min(self._threads, requests or self._threads)
        return self._threads if number < 0 else max(number, 1)

    @property
    def _threads(self) -> int:
        return thread_count(self._set.get("INFERENCE_NUM_THREADS") or None)

    @property
    def threads(self) -> int:
        """The threads of one inference: all threads, divided by the streams."""
        return max(self._threads // self.streams, 1)

    def options(self) -> CompileOptions:
        """The options of `irload.compile_model`. On processors without bf16 arithmetic, bf16 products are f32."""
        precision = self._set.get("INFERENCE_PRECISION_HINT", Type.f32)
        accurate = self.get("EXECUTION_MODE_HINT") is hint.ExecutionMode.ACCURACY
        narrow = precision in (Type.bf16, Type.dynamic) and not accurate
        return {"precision": "auto" if narrow else "f32", "precise": accurate}
