"""CompiledModel: a compiled model of irload with the ports, requests and properties of OpenVINO's API."""

from __future__ import annotations

import os
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from io import BytesIO
from queue import SimpleQueue
from typing import Any, NoReturn

import irload.model
import irload.runtime.compiled_model as running
from irload.openvino import copies
from irload.openvino.config import PropertyValues
from irload.openvino.errors import OpenVINOError, raising, unsupported
from irload.openvino.exporting import exported
from irload.openvino.keys import first_of, port_named
from irload.openvino.model import Model
from irload.openvino.ov_dict import OVDict
from irload.openvino.ports import ConstOutput
from irload.openvino.requests import InferRequest
from irload.openvino.state import VariableState
from irload.openvino.types import element_of, type_of

__all__ = ["CompiledModel"]

WORKERS = 256
"""Maximum number of unfinished requests of a model."""


class _Slots:
    """A context that at most `count` threads enter. A queue of tokens takes less time than a Semaphore of Python."""

    def __init__(self, count: int) -> None:
        self._free = SimpleQueue[None]()
        for _ in range(count):
            self._free.put(None)

    def __enter__(self) -> None:
        self._free.get()

    def __exit__(self, *_: object) -> None:
        self._free.put(None)


class CompiledModel:
    """A compiled model. Call it, or create requests."""

    def __init__(self, other: Any, config: PropertyValues | None = None) -> None:
        if isinstance(other, CompiledModel):
            self.__dict__ = other.__dict__
            return
        self._compiled: running.CompiledModel = other
        self._config = config or PropertyValues("CPU", {})
        self._profiles = self._config.profiles
        self._slots = _Slots(self._config.streams)
        self._in = [ConstOutput(port.node, 0) for port in other.inputs]
        self._out = [ConstOutput(port.node, 0) for port in other.outputs]
        self._elements = [element_of(p.element_type) for p in self._in]
        self._out_elements = [element_of(p.element_type) for p in self._out]
        self._plain = [e.bits >= 8 and type_of(e).to_dtype() == e.dtype for e in self._out_elements]
        """True for outputs whose arrays have the dtype that tensors show."""
        self._infer_request: InferRequest | None = None
        self._pool: ThreadPoolExecutor | None = None
        self._process = os.getpid()

    def _workers(self) -> ThreadPoolExecutor:
        """The threads of asynchronous requests. A forked child starts new threads."""
        if self._pool is None or self._process != os.getpid():
            self._process = os.getpid()
            self._slots = _Slots(self._config.streams)
            self._pool = ThreadPoolExecutor(WORKERS, "irload-request")
        return self._pool

    # -- ports ---------------------------------------------------------------------------------------------------------

    @property
    def inputs(self) -> list[ConstOutput]:
        """The inputs of the model, in the order of its Parameters."""
        return [*self._in]

    @property
    def outputs(self) -> list[ConstOutput]:
        """The outputs of the model, in the order of its Results."""
        return [*self._out]

    def input(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> ConstOutput:
        """An input by index or tensor name; by default the only input."""
        return _port(self._in, first_of(key, index, tensor_name), "input")

    def output(
        self, key: int | str | None = None, *, index: int | None = None, tensor_name: str | None = None
    ) -> ConstOutput:
        """An output by index or tensor name; by default the only output."""
        return _port(self._out, first_of(key, index, tensor_name), "output")

    # -- inference -----------------------------------------------------------------------------------------------------

    def create_infer_request(self) -> InferRequest:
        """A request with separate tensors and a separate state."""
        return InferRequest(self)

    @property
    def _request(self) -> InferRequest:
        if self._infer_request is None:
            self._infer_request = self.create_infer_request()
        return self._infer_request

    def infer_new_request(self, inputs: Any = None) -> OVDict:
        """Run once with a new request."""
        return self.create_infer_request().infer(inputs)

    def __call__(
        self,
        inputs: Any = None,
        share_inputs: bool = True,
        share_outputs: bool = False,
        *,
        decode_strings: bool = True,
    ) -> OVDict:
        """Run once with the request of the model. Arguments as for `InferRequest.infer`."""
        return self._request.infer(inputs, share_inputs, share_outputs, decode_strings=decode_strings)

    def query_state(self) -> list[VariableState]:
        """The variables of the model's request."""
        return self._request.query_state()

    def reset_state(self) -> None:
        """Reset the variables of the model's request."""
        self._request.reset_state()

    # -- properties ----------------------------------------------------------------------------------------------------

    def get_property(self, property: str) -> Any:
        """A property by name. Raises for an unknown one."""
        return self._config.compiled_property(str(property), self._compiled.model.name, self._compiled.threads)

    def set_property(self, *_: Any) -> NoReturn:
        """Raise: the properties of a compiled model are fixed."""
        unsupported("changing properties of a compiled model", "pass them to compile_model")

    def get_runtime_model(self) -> Model:
        """A copy of the model that was compiled. irload's steps are listed by `profiling_info`."""
        return Model._from_graph(copies.clone(self._compiled.model))  # noqa: SLF001

    def release_memory(self) -> None:
        """Release plans and their memory; the next inference plans again."""
        self._compiled = copy(self._compiled)

    @raising
    def export_model(self, model_stream: Any = None) -> BytesIO | None:
        """The model for `Core.import_model`, as a stream, or written to one."""
        data = exported(copies.clone(self._compiled.model), self._config)
        if model_stream is None:
            return BytesIO(data)
        if not hasattr(model_stream, "write"):
            raise TypeError(f"export_model writes to a stream, found {type(model_stream).__name__}")
        model_stream.write(data)
        model_stream.seek(0)
        return None

    def __enter__(self) -> CompiledModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.release_memory()

    def __repr__(self) -> str:
        def listed(ports: list[ConstOutput]) -> str:
            return ",\n".join(map(repr, ports))

        return f"<CompiledModel:\ninputs[\n{listed(self._in)}\n]\noutputs[\n{listed(self._out)}\n]>"


def _port(ports: list[ConstOutput], key: Any, kind: str) -> ConstOutput:
    if key is None:
        if len(ports) != 1:
            raise OpenVINOError(f"{kind}() requires a model with exactly one {kind}; this one has {len(ports)}")
        return ports[0]
    if isinstance(key, str):
        return port_named(ports, key, kind)
    if not isinstance(key, int):
        raise TypeError(f"the key of an {kind} is an index or a name, found {type(key).__name__}")
    if not 0 <= key < len(ports):
        raise OpenVINOError(f"Cannot get {kind} for index: {key} {kind}s size is {len(ports)}")
    return ports[key]


def compile_graph(model: Model, config: PropertyValues) -> CompiledModel:
    """Compile a copy of the model, so that later edits of the model do not change it."""
    return compile_copy(copies.clone(model._graph), config)  # noqa: SLF001


def compile_copy(model: irload.model.Model, config: PropertyValues) -> CompiledModel:
    """Compile a model of irload without copying it. Nothing else may edit the model afterwards."""
    compiled = running.CompiledModel(model, config.threads, **config.options())
    compiled.prepare()
    return CompiledModel(compiled, config)


def properties_of(given: Mapping[Any, Any] | None) -> dict[str, Any]:
    """Properties by the texts of their names."""
    return {str(key): value for key, value in (given or {}).items()}
