"""The input and output tensors of a request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from irload.core.element import ElementType
from irload.core.shape import Shape as Dims
from irload.core.tensor import Array
from irload.openvino.errors import OpenVINOError
from irload.openvino.ports import ConstOutput
from irload.openvino.tensors import Tensor
from irload.openvino.types import element_of

if TYPE_CHECKING:
    from irload.openvino.compiled import CompiledModel

__all__ = ["RequestTensors"]


class RequestTensors:
    """The tensors of a request, by index, name and port."""

    def __init__(self, owner: CompiledModel) -> None:
        self._owner = owner
        self._in: list[Tensor | None] = [None] * len(owner.inputs)
        self._out: list[Tensor | None] = [None] * len(owner.outputs)
        """Output tensors that were requested or set; the others are created from `_results` on first use."""
        self._set_outputs: set[int] = set()
        self._lent: set[int] = set()
        """Outputs whose array was returned to the caller: a tensor created for one of them is a copy."""
        self._results: Sequence[Array] | None = None
        self._accepted: dict[int, tuple[int, ...]] = {}
        """The last shape of each input that was checked."""
        self._batches: dict[int, Sequence[Tensor]] = {}
        """The tensors of inputs that consist of one tensor per item of the batch."""

    def _require_idle(self) -> None:
        raise NotImplementedError

    @property
    def model_inputs(self) -> list[ConstOutput]:
        """The inputs of the model."""
        return self._owner.inputs

    @property
    def model_outputs(self) -> list[ConstOutput]:
        """The outputs of the model."""
        return self._owner.outputs

    @property
    def input_tensors(self) -> list[Tensor]:
        """The tensors of all inputs."""
        return [self._input(k) for k in range(len(self._in))]

    @property
    def output_tensors(self) -> list[Tensor]:
        """The tensors of all outputs."""
        return [self._output(k) for k in range(len(self._out))]

    # -- internal access -----------------------------------------------------------------------------------------------

    def _input(self, index: int) -> Tensor:
        tensor = self._in[index]
        if tensor is None:
            tensor = self._in[index] = Tensor._unfilled(self.model_inputs[index])  # noqa: SLF001
        return tensor

    def _output(self, index: int) -> Tensor:
        tensor = self._out[index]
        if tensor is None:
            port = self.model_outputs[index]
            if self._results is None:
                tensor = Tensor._unfilled(port)  # noqa: SLF001
            else:
                array, lent = self._results[index], index in self._lent
                tensor = Tensor._from_array(array, self._element(index), shared=not lent)  # noqa: SLF001
            self._out[index] = tensor
        return tensor

    def _element(self, index: int) -> ElementType:
        return self._owner._out_elements[index]  # noqa: SLF001

    def _computed(self, index: int) -> Array | None:
        """Return the array of an output that has no tensor yet and has the dtype of a tensor's data.

        The caller may change the array, so the next call returns a copy, and a tensor created later has a copy.
        """
        results = cast("list[Array] | None", self._results)
        if results is None or not self._owner._plain[index]:  # noqa: SLF001
            return None
        if index in self._lent:
            return results[index].copy()
        self._lent.add(index)
        return results[index]

    def _store(self, results: Sequence[Array]) -> None:
        """Record the results of an inference, in the tensors that were set for them."""
        self._results = results
        self._lent.clear()
        for k, array in enumerate(results):
            tensor = self._out[k]
            if tensor is None:
                continue
            result = Tensor._from_array(array, self._element(k))  # noqa: SLF001
            if k in self._set_outputs or tensor.shape == result.shape:
                tensor.copy_from(result)  # tensors that a script holds show the new values
            else:
                self._out[k] = None

    def _values(self) -> list[Array]:
        """The values of the inputs in irload's storage dtypes."""
        for index, tensors in self._batches.items():
            self._in[index] = _joined(tensors)
        return [tensor._value() for tensor in self.input_tensors]  # noqa: SLF001

    def _is_given(self, index: int, array: Array) -> bool:
        """True if the current tensor of an input has memory of the caller and another shape than the array."""
        tensor = self._input(index)
        return tensor._fixed and tuple(tensor.shape) != array.shape  # noqa: SLF001

    def _input_index(self, key: Any) -> int:
        is_input, index = self._located(key)
        if not is_input:
            raise OpenVINOError(f"{key!r} is an output of the model")
        return index

    def _located(self, key: Any) -> tuple[bool, int]:
        """Whether a key is an input, and its index. Raises RuntimeError for an unknown key."""
        if isinstance(key, int):
            if not 0 <= key < len(self._in):
                raise OpenVINOError(f"there is no input {key}; the model has {len(self._in)}")
            return True, key
        if isinstance(key, str):
            for is_input, ports in ((True, self.model_inputs), (False, self.model_outputs)):
                for k, port in enumerate(ports):
                    if key in port.names:
                        return is_input, k
            raise OpenVINOError(f"Check of the port failed: Port for tensor name {key} was not found.")
        if isinstance(key, ConstOutput):
            for is_input, ports in ((True, self.model_inputs), (False, self.model_outputs)):
                if key in ports:
                    return is_input, ports.index(key)
            return self._by_names(key)
        raise TypeError(f"Unsupported key type: {type(key)} for Tensor under key: {key}")

    def _by_names(self, key: ConstOutput) -> tuple[bool, int]:
        """As `_located`, for a port of the model before compilation, which is looked up by its names."""
        for name in key.names:
            return self._located(name)
        raise OpenVINOError(f"{key} is not a port of the model")

    def _set_tensor(self, key: Any, tensor: Tensor, *, output: bool = False) -> None:
        if not isinstance(tensor, Tensor):
            raise TypeError(f"expected a Tensor, found {type(tensor).__name__}")
        is_input, index = (False, key) if output else self._located(key)
        port = (self.model_inputs if is_input else self.model_outputs)[index]
        if tensor.element_type != port.element_type and not port.element_type.is_dynamic():
            raise OpenVINOError(
                f"Failed to set tensor for {'input' if is_input else 'output'} with precision: "
                f"{tensor.element_type.type_name}, since the model's is {port.element_type.type_name}"
            )
        if is_input:
            self._put(index, tensor)
        else:
            if port.partial_shape.is_static or tensor._shape != (0,):  # noqa: SLF001
                _require_fit(port, index, tensor._shape, "output")  # noqa: SLF001
            self._out[index] = tensor
            self._set_outputs.add(index)

    def _require_shape(self, index: int, shape: Any) -> None:
        sizes = tuple(shape)
        if self._accepted.get(index) != sizes:
            _require_fit(self._owner._in[index], index, sizes, "input")  # noqa: SLF001
            self._accepted[index] = sizes

    def _put(self, index: int, tensor: Tensor) -> None:
        """Set the tensor of an input that has the type of the input."""
        self._require_shape(index, tensor._shape)  # noqa: SLF001
        self._batches.pop(index, None)
        self._in[index] = tensor

    def _set_batch(self, key: Any, tensors: Sequence[Tensor]) -> None:
        """Set one input from tensors of one item each, concatenated along the batch axis."""
        if not tensors:
            raise OpenVINOError("a batch has at least one tensor")
        index = self._input_index(key)
        self._batches.pop(index, None)
        self._set_tensor(index, _joined(tensors))
        self._batches[index] = tensors

    # -- tensors by index, name and port -------------------------------------------------------------------------------

    def get_tensor(self, key: str | ConstOutput) -> Tensor:
        """The tensor of an input or output by name or port."""
        self._require_idle()
        is_input, index = self._located(key)
        if is_input and index in self._batches:
            raise OpenVINOError("get_tensor shall not be used together with batched set_tensors/set_input_tensors")
        return self._input(index) if is_input else self._output(index)

    def set_tensor(self, key: Any, tensor: Tensor) -> None:
        """Set the tensor of an input or output by name or port."""
        self._require_idle()
        self._set_tensor(key, tensor)

    def get_input_tensor(self, index: int | None = None) -> Tensor:
        """The tensor of an input, by default of the only input."""
        self._require_idle()
        return self._input(_only(index, len(self._in), "input"))

    def get_output_tensor(self, index: int | None = None) -> Tensor:
        """The tensor of an output, by default of the only output."""
        self._require_idle()
        return self._output(_only(index, len(self._out), "output"))

    def set_input_tensor(self, *given: Any) -> None:
        """Set the tensor of an input: `set_input_tensor(index, tensor)`, or of the only one without an index."""
        self._require_idle()
        index, tensor = given if len(given) == 2 else (None, given[0])
        self._set_tensor(_only(index, len(self._in), "input"), tensor)

    def set_output_tensor(self, *given: Any) -> None:
        """Set the tensor that receives an output: `set_output_tensor(index, tensor)`."""
        self._require_idle()
        index, tensor = given if len(given) == 2 else (None, given[0])
        self._set_tensor(_only(index, len(self._out), "output"), tensor, output=True)

    def set_input_tensors(self, *given: Any) -> None:
        """Set the tensors of inputs by index, name or port; or several tensors of one input, as a batch."""
        self._require_idle()
        if len(given) == 2:
            self._set_batch(given[0], given[1])
        elif isinstance(given[0], Mapping):
            for key, tensor in cast("Mapping[Any, Tensor]", given[0]).items():
                self._set_tensor(key, tensor)
        else:
            self._set_batch(_only(None, len(self._in), "input"), given[0])

    def set_output_tensors(self, outputs: Mapping[Any, Tensor]) -> None:
        """Set the tensors that receive outputs by index."""
        self._require_idle()
        for key, tensor in outputs.items():
            self._set_tensor(key, tensor, output=isinstance(key, int))


def _require_fit(port: ConstOutput, index: int, sizes: tuple[int, ...], kind: str) -> None:
    takes = port._type.shape  # noqa: SLF001
    if not takes.contains(Dims(*sizes)):
        raise OpenVINOError(
            f"Can't set the {kind} tensor with index: {index}, because the model {kind} (shape={takes}) and "
            f"the tensor (shape={list(sizes)}) are incompatible"
        )


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    """One tensor of the items of a batch."""
    values = [tensor._value() for tensor in tensors]  # noqa: SLF001
    return Tensor._from_array(np.concatenate(values), element_of(tensors[0].element_type))  # noqa: SLF001


def _only(index: int | None, count: int, kind: str) -> int:
    if index is None:
        if count != 1:
            raise OpenVINOError(f"the model has {count} {kind}s; give the index of one")
        return 0
    if not 0 <= index < count:
        raise OpenVINOError(f"there is no {kind} {index}; the model has {count}")
    return index
