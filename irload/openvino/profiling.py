"""ProfilingInfo: the time of one step of an inference."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, ClassVar

from irload.core.tensor import Array
from irload.openvino.attributes import TYPE_NAMES
from irload.openvino.enums import Choice

if TYPE_CHECKING:
    from irload.runtime.compiled_model import CompiledModel

__all__ = ["ProfilingInfo", "profiled"]


class Status(Choice):
    """Whether a layer ran."""

    NOT_RUN = 0
    OPTIMIZED_OUT = 1
    EXECUTED = 2


class ProfilingInfo:
    """The time of one step: `node_name`, `node_type`, `exec_type` (the kernel), `real_time`, `cpu_time`, `status`."""

    Status = Status
    NOT_RUN: ClassVar[Status] = Status.NOT_RUN
    OPTIMIZED_OUT: ClassVar[Status] = Status.OPTIMIZED_OUT
    EXECUTED: ClassVar[Status] = Status.EXECUTED

    def __init__(self) -> None:
        self.status = Status.NOT_RUN
        self.node_name = self.node_type = self.exec_type = ""
        self.real_time = self.cpu_time = timedelta()

    def __repr__(self) -> str:
        return "<ProfilingInfo>"


def profiled(compiled: CompiledModel, inputs: Sequence[Array], *, enabled: bool) -> list[ProfilingInfo]:
    """The steps of an inference on these inputs with their times; the layers without times if profiling is off."""
    infos: list[ProfilingInfo] = []
    if not enabled:
        for node in compiled.model.nodes:
            info = ProfilingInfo()
            info.node_name, info.node_type = node.name, TYPE_NAMES.get(node.type, node.type)
            infos.append(info)
        return infos
    for step in compiled.profile([*inputs], rounds=1):
        info = ProfilingInfo()
        info.status = Status.EXECUTED
        last = step.origin[-1].type if step.origin else step.operation
        info.node_name, info.node_type, info.exec_type = step.layer, TYPE_NAMES.get(last, last), step.kernel
        info.real_time = info.cpu_time = timedelta(seconds=step.seconds)
        infos.append(info)
    return infos
