"""Names of properties of NPUs, which irload does not have: setting one is an error."""

from __future__ import annotations

from irload.openvino.properties.names import Fact, Property, TextProperty

_FACTS = ("device_alloc_mem_size", "device_total_mem_size", "driver_version", "compiler_version")
_TEXTS = ("compilation_mode_params",)
_SETTINGS = (
    *("turbo", "tiles", "max_tiles", "bypass_umd_caching", "defer_weights_load", "compiler_dynamic_quantization"),
    *("run_inferences_sequentially", "qdq_optimization", "qdq_optimization_aggressive", "disable_version_check"),
)
_KINDS = {Fact: _FACTS, TextProperty: _TEXTS, Property: _SETTINGS}

globals().update({name: kind(f"NPU_{name.upper()}") for kind, names in _KINDS.items() for name in names})

__all__ = [*_FACTS, *_TEXTS, *_SETTINGS]  # pyrefly: ignore[unresolvable-dunder-all]
