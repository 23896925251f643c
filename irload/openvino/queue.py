"""AsyncInferQueue: a pool of requests for pipelines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Condition
from typing import Any

from irload.openvino.compiled import CompiledModel
from irload.openvino.errors import translated
from irload.openvino.input_data import set_inputs
from irload.openvino.requests import InferRequest

__all__ = ["AsyncInferQueue"]


class AsyncInferQueue:
    """A pool of `jobs` requests, as many as the model has streams by default.

    `start_async` runs on the next idle request and waits for one if there is none. Exceptions of inferences and
    callbacks surface at the next `start_async`, `get_idle_request_id` or `wait_all`.
    """

    def __init__(self, model: CompiledModel, jobs: int = 0) -> None:
        count = jobs or model.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
        if count < 1:
            raise ValueError(f"a queue has at least one job, found {jobs}")
        self._requests = [model.create_infer_request() for _ in range(count)]
        self._model = model
        self._idle = list(range(count))
        self._userdata: list[Any] = [None] * count
        self._errors: list[BaseException] = []
        self._changed = Condition()
        self._callback: Callable[[InferRequest, Any], object] | None = None

    def set_callback(self, callback: Callable[[InferRequest, Any], object]) -> None:
        """Call `callback(request, userdata)` in the worker thread after each inference."""
        self._callback = callback

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Run on the next idle request. Arguments as for `InferRequest.infer`; `userdata` is passed to the callback."""
        with self._changed:
            number = self._next_idle()
            self._idle.remove(number)
        request = self._requests[number]
        try:
            with translated():
                set_inputs(request, inputs, shared=share_inputs)
            self._userdata[number] = request.userdata = userdata
            request._busy = True  # pyright: ignore[reportPrivateUsage]
            self._model._workers().submit(self._run, number)  # pyright: ignore[reportPrivateUsage]
        except BaseException:
            self._finish(number, None)
            raise

    def _run(self, number: int) -> None:
        request, error = self._requests[number], None
        try:
            try:
                with translated():
                    request._run()  # pyright: ignore[reportPrivateUsage]
            finally:
                request._busy = False  # pyright: ignore[reportPrivateUsage]
            if self._callback is not None:
                self._callback(request, self._userdata[number])
        except BaseException as raised:
            error = raised
        self._finish(number, error)

    def _finish(self, number: int, error: BaseException | None) -> None:
        with self._changed:
            self._requests[number]._busy = False  # pyright: ignore[reportPrivateUsage]
            self._idle.append(number)
            if error is not None:
                self._errors.append(error)
            self._changed.notify_all()

    def _raise_first(self) -> None:
        if self._errors:
            errors, self._errors = self._errors, []
            raise errors[0]

    def get_idle_request_id(self) -> int:
        """The number of an idle request; waits until there is one."""
        with self._changed:
            return self._next_idle()

    def _next_idle(self) -> int:
        self._changed.wait_for(lambda: self._idle)
        self._raise_first()
        return self._idle[0]

    def is_ready(self) -> bool:
        """True if a request is idle."""
        with self._changed:
            self._raise_first()
            return bool(self._idle)

    def wait_all(self) -> None:
        """Wait for all inferences and callbacks. Raises the first exception of them."""
        with self._changed:
            self._changed.wait_for(lambda: len(self._idle) == len(self._requests))
            self._raise_first()

    @property
    def userdata(self) -> list[Any]:
        """The userdata of each request."""
        return self._userdata

    def __len__(self) -> int:
        return len(self._requests)

    def __iter__(self) -> Iterator[InferRequest]:
        return iter(self._requests)

    def __getitem__(self, index: int) -> InferRequest:
        return self._requests[index]

    def __repr__(self) -> str:
        return f"<AsyncInferQueue of {len(self)} requests>"
