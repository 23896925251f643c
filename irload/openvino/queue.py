"""AsyncInferQueue: a pool of requests for pipelines."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from queue import SimpleQueue
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
        self._userdata: list[Any] = [None] * count
        self._errors: list[BaseException] = []
        self._callback: Callable[[InferRequest, Any], object] | None = None
        self._idle = SimpleQueue[int]()
        """The numbers of idle requests. The operations of SimpleQueue and deque are atomic, so no lock is needed."""
        self._next = deque[int]()
        """Numbers that were taken from `_idle` for get_idle_request_id. The next inference uses one of them."""
        for number in range(count):
            self._idle.put(number)

    def set_callback(self, callback: Callable[[InferRequest, Any], object]) -> None:
        """Call `callback(request, userdata)` in the worker thread after each inference."""
        self._callback = callback

    def start_async(self, inputs: Any = None, userdata: Any = None, share_inputs: bool = False) -> None:
        """Run on the next idle request. Arguments as for `InferRequest.infer`; `userdata` is passed to the callback."""
        number = self._take()
        request = self._requests[number]
        try:
            self._raise_first()
            with translated():
                set_inputs(request, inputs, shared=share_inputs)
            self._userdata[number] = request.userdata = userdata
            request._busy = True  # noqa: SLF001
            self._model._workers().submit(self._run, number)  # noqa: SLF001
        except BaseException:
            self._finish(number)
            raise

    def _run(self, number: int) -> None:
        request = self._requests[number]
        try:
            with translated():
                request._run()  # noqa: SLF001
            request._busy = False  # noqa: SLF001
            if self._callback is not None:
                self._callback(request, self._userdata[number])
        except BaseException as raised:
            self._errors.append(raised)
        self._finish(number)

    def _take(self) -> int:
        """An idle request; waits until there is one."""
        try:
            return self._next.popleft()
        except IndexError:
            return self._idle.get()

    def _finish(self, number: int) -> None:
        self._requests[number]._busy = False  # noqa: SLF001
        self._idle.put(number)

    def _raise_first(self) -> None:
        if self._errors:
            errors, self._errors = self._errors, []
            raise errors[0]

    def get_idle_request_id(self) -> int:
        """The number of an idle request; waits until there is one."""
        number = self._take()
        self._next.appendleft(number)
        self._raise_first()
        return number

    def is_ready(self) -> bool:
        """True if a request is idle."""
        self._raise_first()
        return bool(self._next) or not self._idle.empty()

    def wait_all(self) -> None:
        """Wait for all inferences and callbacks. Raises the first of their exceptions."""
        numbers: list[int] = []
        try:
            while len(numbers) < len(self._requests):
                numbers.append(self._take())
        finally:
            for number in numbers:
                self._idle.put(number)
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
