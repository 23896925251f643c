"""Variables that grow: rows are appended in place, and no reader sees rows of another inference."""

from __future__ import annotations

import gc
from collections.abc import Sequence

import numpy as np
import pytest

import irload
from irload.core.tensor import Array
from irload.options import Options
from irload.plan.backends.registry import compiled_backend
from irload.plan.executor import Executor
from irload.plan.ir.steps import ConcatStep
from irload.plan.traced.workspace import SHAPES
from irload.plan.variables import LEAST_ROOM, GrowingForm, GrownRows, Room, Variables
from tests.plan.test_variables import Twin, compiled, decoder, some


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Compiled kernels, which read variables that grow."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    if compiled_backend(Options()) is None:
        pytest.skip("no compiled kernels")


def rows_of(request: irload.InferRequest) -> GrownRows:
    rows = request.variables.rows
    assert rows is not None
    return rows


def identity(batch: int) -> Array:
    return np.arange(batch, dtype=np.int32)


def test_tokens_are_appended_in_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("irload.plan.variables.LEAST_ROOM", 64)
    rng = np.random.default_rng(0)
    twin = Twin(*compiled(decoder()))
    rooms: list[Room] = []
    lengths: list[int] = []
    for rows in [7, *[1] * 150, 4, 1]:
        twin.infer(some(rng, 2, rows)[0], identity(2))
        if len(lengths) or twin.requests[0].variables.rows is not None:
            held = rows_of(twin.requests[0])
            lengths.append(held.length)
            rooms += [held.room] if held.room not in rooms else []
    assert lengths == [*range(8, 158), 161, 162]
    assert [room.capacity for room in rooms] == [64, 130, 262]


@pytest.mark.parametrize(
    ("allowed", "capacity"), [(2**30, LEAST_ROOM), (LEAST_ROOM * 512, LEAST_ROOM), (LEAST_ROOM * 512 - 1, 18), (512, 9)]
)
def test_the_room_is_as_large_as_allowed(allowed: int, capacity: int) -> None:
    form = GrowingForm("rows", (2, 1, 64), 1, np.dtype(np.float32))
    rows = GrownRows.copied([form], [np.ones((2, 8, 64), np.float32)], 1, lambda nbytes: nbytes <= allowed)
    assert rows.room.capacity == capacity
    assert rows.room.array(0, 8).sum() == 2 * 8 * 64


def test_less_room_if_the_system_refuses(monkeypatch: pytest.MonkeyPatch) -> None:
    form = GrowingForm("rows", (1, 16), 0, np.dtype(np.float32))

    def reserved(size: int) -> Array:
        if size > 18 * 64:
            raise MemoryError
        return np.empty(size, np.uint8)

    monkeypatch.setattr("irload.plan.variables.reserved_bytes", reserved)
    assert GrownRows.copied([form], [np.zeros((8, 16), np.float32)], 1).room.capacity == 18
    assert GrownRows.copied([form], [np.zeros((15, 16), np.float32)], 1).room.capacity == 16


def test_precision_auto_appends_to_caches() -> None:
    backend = compiled_backend(Options(precision="auto", variables=True))
    request = irload.compile_model(decoder(), 1, precision="auto").create_infer_request()
    for rows in (7, 1, 1):
        request.infer([some(np.random.default_rng(5), 2, rows)[0], identity(2)])
    assert backend is not None
    assert backend.precision == "f32"
    assert request.variables.rows is not None


def test_caches_without_rows_are_not_concatenated() -> None:
    planned = compiled(decoder())[0]
    for rows in (7, 9):
        planned.create_infer_request().infer([some(np.random.default_rng(2), 2, rows)[0], identity(2)])
    (template,) = {variant.template for variant in planned._traced.families.recent}
    assert not any(isinstance(step, ConcatStep) for step in template.program.steps)
    assert [backend.name for backend, _ in template.segments].count("llvm") == 1


def test_a_state_that_was_read_stays() -> None:
    rng = np.random.default_rng(1)
    request = compiled(decoder())[0].create_infer_request()
    for rows in (5, 1, 1):
        request.infer([some(rng, 2, rows)[0], identity(2)])
    (state,) = request.query_state()
    read, view = state.state, request.variables["rows"]
    assert read is not None
    before = read.copy()
    read[...] = 0
    np.testing.assert_array_equal(view, before)
    for order in (identity(2), identity(2)[::-1].copy(), identity(2)):
        request.infer([some(rng, 2, 1)[0], order])
    np.testing.assert_array_equal(view, before)


def test_a_state_set_back_continues_from_there() -> None:
    rng = np.random.default_rng(2)
    twin = Twin(*compiled(decoder()))
    for rows in (5, 1, 1):
        twin.infer(some(rng, 1, rows)[0], identity(1))
    held = [request.query_state()[0].state for request in twin.requests]
    for _ in range(3):
        twin.infer(some(rng, 1, 1)[0], identity(1))
    for request, value in zip(twin.requests, held, strict=True):
        request.query_state()[0].state = value
    for _ in range(3):
        twin.infer(some(rng, 1, 1)[0], identity(1))
    assert rows_of(twin.requests[0]).length == 10


def test_the_batch_is_reordered_repeated_and_cut() -> None:
    rng = np.random.default_rng(3)
    twin = Twin(*compiled(decoder()))
    for order in ([0, 1, 2], [0, 1, 2], [2, 0, 1], [1, 1, 1], [0, 1, 2], [0, 1], [0, 1], [1, 0, 0, 1], [3, 2, -1, 0]):
        twin.infer(some(rng, len(order), 1 + (not twin.requests[0].variables))[0], np.array(order, np.int32))


def test_an_inference_that_fails_appends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    twin = Twin(*compiled(decoder()))
    for rows in (5, 1, 1):
        twin.infer(some(rng, 2, rows)[0], identity(2))
    with monkeypatch.context() as patch:
        patch.setattr(Executor, "_results", _fails)
        with pytest.raises(irload.ExecutionError, match="of a test"):
            twin.requests[0].infer([some(rng, 2, 1)[0], identity(2)])
    for _ in range(2):
        twin.infer(some(rng, 2, 1)[0], identity(2))


def _fails(self: Executor, arrays: Sequence[Array], wide: bool) -> tuple[Array, ...]:
    raise irload.ExecutionError("of a test")


def test_rows_of_one_length_are_extended_once() -> None:
    forms = (GrowingForm("a", (2, 1, 3), 1, np.dtype(np.float32)), GrowingForm("b", (1,), 0, np.dtype(np.int8)))
    arrays = [np.arange(30, dtype=np.float32).reshape(2, 5, 3), np.arange(5, dtype=np.int8)]
    rows = GrownRows.copied(forms, arrays, 2)
    for k, array in enumerate(arrays):
        np.testing.assert_array_equal(rows.room.array(k, 5), array)
    first = rows.extended(forms, 1)
    assert first is not None
    assert (first.length, first.room) == (8, rows.room)
    assert rows.extended(forms, 1) is None, "another inference has written behind these rows"
    assert first.extended(forms, rows.room.capacity) is None
    assert first.extended(forms[:1], 1) is None
    assert GrownRows.copied(forms, arrays, 2, lambda nbytes: False).room.capacity == 7


def test_variables_are_a_mapping() -> None:
    forms = (GrowingForm("a", (1, 3), 0, np.dtype(np.float32)), GrowingForm("b", (1,), 0, np.dtype(np.int8)))
    variables = Variables({"other": np.zeros(1), "a": np.ones((4, 3))})
    variables.hold(GrownRows.copied(forms, [np.ones((2, 3), np.float32), np.arange(2, dtype=np.int8)], 0))
    assert set(variables) == {"a", "b", "other"}
    assert len(variables) == 3
    assert variables["a"].shape == (2, 3)
    other = variables.copy()
    other["a"] = np.zeros(1)
    assert other.rows is None
    assert variables.rows is not None
    np.testing.assert_array_equal(other["b"], [0, 1])
    del variables["b"]
    assert set(variables) == {"a", "other"}


def test_tokens_accumulate_no_objects() -> None:
    """A plan stays bound to the last shapes only, and no other objects accumulate."""
    rng = np.random.default_rng(6)
    request = compiled(decoder())[0].create_infer_request()

    def objects_after(tokens: int) -> int:
        for _ in range(tokens):
            request.infer([some(rng, 1, 1 + (not request.variables))[0], identity(1)])
        gc.collect()
        return len(gc.get_objects())

    before = objects_after(SHAPES + 10)
    assert objects_after(60) < before + 100


def test_memory_of_variables_is_limited() -> None:
    rng = np.random.default_rng(5)
    request = irload.compile_model(decoder(), 1, limits=irload.Limits(peak_bytes=200_000)).create_infer_request()

    def infer(*counts: int) -> None:
        for rows in counts:
            request.infer([some(rng, 1, rows)[0], identity(1)])

    infer(5, 1, 1)
    with pytest.raises(irload.LimitExceeded):
        infer(*[400] * 20)
