"""InferRequest: the tensors and the state of inferences, which run in the calling thread or in a worker."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError, Future
from concurrent.futures import TimeoutError as NotDone
from time import perf_counter
from typing import TYPE_CHECKING, Any, cast

from irload.core.element import string
from irload.core.tensor import Array
from irload.openvino.errors import OpenVINOError, raising, translated
from irload.openvino.input_data import set_inputs
from irload.openvino.ov_dict import OVDict
from irload.openvino.ports import ConstOutput
from irload.openvino.profiling import ProfilingInfo, profiled
from irload.openvino.request_tensors import RequestTensors
from irload.openvino.state import VariableState
from irload.openvino.tensors import Tensor
from irload.runtime.compiled_model import InferRequest as Running

if TYPE_CHECKING:
    from irload.openvino.compiled import CompiledModel

__all__ = ["InferRequest"]


class InferRequest(RequestTensors):
    """Inferences of a compiled model that share tensors and state."""

    def __init__(self, other: InferRequest | CompiledModel) -> None:
        if isinstance(other, InferRequest):
            self.__dict__ = other.__dict__  # two names of one request
            return
        super().__init__(other)
        self._running = Running(other._compiled)  # noqa: SLF001
        self._future: Future[None] | None = None
        self._busy = False
        self._callback: Callable[[Any], object] | None = None
        self._latency = 0.0
        self.userdata: Any = None

    # -- inference -----------------------------------------------------------------------------------------------------

    def infer(
        self,
        inputs: Any = None,
        share_inputs: bool = False,
        share_outputs: bool = False,
        *,
        decode_strings: bool = True,
    ) -> OVDict:
        """Run once and return the outputs.

        `inputs`: a dict by index, name or port, a list, or the value of the only input; without them the tensors set
        before. `share_inputs`: use arrays in place where dtype and memory allow it. `share_outputs`: return views of
        the output tensors. `decode_strings`: return strings as kind U, otherwise S.
        """
        self._require_idle()
        with translated():
            set_inputs(self, inputs, shared=share_inputs)
            self._run()
            return self._outputs(share_outputs, decode_strings)

    def _run(self) -> None:
        start = perf_counter()
        owner = self._owner
        self._running.compiled = owner._compiled  # noqa: SLF001
        values = self._values()
        with owner._slots:  # noqa: SLF001
            result = self._running.infer(values)
        self._store([result[k] for k in range(len(result))])
        self._latency = (perf_counter() - start) * 1e3

    def _outputs(self, shared: bool, decode: bool) -> OVDict:
        ports = self._owner._out  # noqa: SLF001
        return OVDict({port: self._array(k, shared, decode) for k, port in enumerate(ports)})

    def _array(self, index: int, shared: bool, decode: bool) -> Array:
        if self._out[index] is None and not shared:
            array = self._computed(index)
            if array is not None:
                return array
        tensor = self._output(index)
        if tensor.element_type.type_name == string.name:
            return tensor.str_data if decode else tensor.bytes_data
        return tensor.data if shared else tensor.data.copy()

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Start an inference in a worker thread. `userdata` is passed to the callback. Arguments as for `infer`."""
        self._require_idle()
        with translated():
            set_inputs(self, inputs, shared=share_inputs)
        if userdata is not None:
            self.userdata = userdata
        self._busy = True
        try:
            self._future = self._owner._workers().submit(self._run_in_worker)  # noqa: SLF001
        except BaseException:
            self._busy = False
            raise

    def _run_in_worker(self) -> None:
        try:
            with translated():
                self._run()
        finally:
            self._busy = False
        if self._callback is not None:
            try:
                self._callback(self.userdata)
            except Exception as error:
                raise OpenVINOError(f"{type(error).__name__}: {error}") from error

    @raising
    def wait(self) -> None:
        """Wait for the inference and its callback. Raises RuntimeError if one of them fails."""
        future, self._future = self._future, None
        if future is not None:
            try:
                future.result()
            except CancelledError:
                raise OpenVINOError("Infer Request was canceled") from None

    @raising
    def wait_for(self, timeout: int) -> bool:
        """Wait at most `timeout` milliseconds. True if the inference is done."""
        if timeout < 0:
            raise OpenVINOError(f"the timeout is a number of milliseconds of at least 0, found {timeout}")
        if self._future is None:
            return True
        try:
            self._future.result(timeout / 1e3)
        except NotDone:
            return False
        return True

    def cancel(self) -> None:
        """Cancel an inference that has not begun yet; one that runs is completed."""
        if self._future is not None and self._future.cancel():
            self._busy = False

    def set_callback(self, callback: Callable[[Any], object], userdata: Any = None) -> None:
        """Call `callback(userdata)` in the worker thread after each asynchronous inference."""
        self._require_idle()
        if not callable(callback):
            raise TypeError(f"expected a function to call back, found {callback!r}")
        self._callback = callback
        self.userdata = userdata

    def _require_idle(self) -> None:
        if self._busy:
            raise OpenVINOError("Infer Request is busy")

    # -- results -------------------------------------------------------------------------------------------------------

    @property
    def results(self) -> OVDict:
        """The outputs of the last inference."""
        self._require_idle()
        return self._outputs(shared=False, decode=True)

    @property
    def latency(self) -> float:
        """The time of the last inference in milliseconds."""
        self._require_idle()
        return self._latency

    @property
    def profiling_info(self) -> list[ProfilingInfo]:
        """The time of each step, measured by another inference on the same inputs if profiling is enabled."""
        self._require_idle()
        owner = self._owner
        return profiled(owner._compiled, self._values(), enabled=owner._profiles)  # noqa: SLF001

    def get_profiling_info(self) -> list[ProfilingInfo]:
        """`profiling_info`."""
        return self.profiling_info

    def get_compiled_model(self) -> CompiledModel:
        """The compiled model."""
        return self._owner

    # -- state ---------------------------------------------------------------------------------------------------------

    def query_state(self) -> list[VariableState]:
        """The states of the variables, to read, set and reset their values."""
        self._require_idle()
        return [VariableState(state, self._running) for state in self._running.query_state()]

    def reset_state(self) -> None:
        """Reset all variables to their initial values."""
        self._require_idle()
        self._running.reset_state()

    def __repr__(self) -> str:
        return f"<InferRequest:\ninputs[\n{_listed(self.model_inputs)}\n]\noutputs[\n{_listed(self.model_outputs)}\n]>"

    def set_tensors(self, inputs: Any, tensors: Any = None) -> None:
        """Set tensors of inputs and outputs by index, name or port; or several tensors of one input, as a batch."""
        if tensors is not None:
            self._set_batch(inputs, tensors)
            return
        for key, tensor in cast("Mapping[Any, Tensor]", inputs).items():
            self.set_tensor(key, tensor)


def _listed(ports: Sequence[ConstOutput]) -> str:
    return ",\n".join(map(repr, ports))
