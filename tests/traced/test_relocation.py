"""Relocation gives the same tables as compiling every step, word for word."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.core.trace import Trace
from irload.model import Model
from irload.options import Options
from irload.plan.backends.compiled import CompiledBackend
from irload.plan.backends.registry import compiled_backend
from irload.plan.folding import Folding
from irload.plan.schedule import schedule_graph
from irload.plan.traced.binding import Binding
from irload.plan.traced.pattern import Symbols
from irload.plan.traced.template import Template
from irload.plan.traced.workspace import Workspace
from tests.traced.nets import encoder, fully_convolutional

ENTRY = 7
FUNCTION, ARGUMENTS, UNITS, SHARED, MEETING, AHEAD, NEXT = range(ENTRY)


def template_of(model: Model, options: Options, *shapes: tuple[int, ...]) -> tuple[Template, Symbols]:
    """The plan of a model, traced at these shapes of its inputs."""
    symbols = Symbols.of([p.output.type.shape for p in model.inputs], shapes)
    given = [TensorType(p.output.type.element, Shape(*s)) for p, s in zip(model.inputs, shapes, strict=True)]
    trace = Trace()
    schedule = schedule_graph(model, symbols.traced(given, trace), Folding())
    assert schedule.part is not None
    return Template(schedule.part, trace, options, {}), symbols


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> CompiledBackend:
    """The compiled back end of this machine."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    found = compiled_backend(Options())
    if found is None:
        pytest.skip("no compiled kernels")
    return found


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("make", "shape", "others"),
    [
        (encoder, (2, 17, 32), [(2, 17), (3, 50), (5, 2), (2, 61)]),
        (fully_convolutional, (2, 3, 12, 16), [(2, 12, 16), (3, 12, 16), (5, 12, 16)]),
    ],
)
def test_relocated_tables(
    make: Callable[[], Model],
    shape: tuple[int, ...],
    others: list[tuple[int, ...]],
    threads: int,
    backend: CompiledBackend,
) -> None:
    options = Options(threads=threads)
    template, symbols = template_of(make(), options, shape)
    workspace = Workspace(template)
    compared = 0
    for values in others:
        assert template.holds(values)
        plan = workspace.bind(values)
        binding = Binding(workspace, template.numbers.evaluate(values))
        for (owner, steps), segment in zip(template.segments, plan.segments, strict=True):
            if segment.backend == "llvm":
                concrete = [binding.step(step) for step in steps]
                one_by_one = owner.compile(concrete, binding.memory, options, template.shared)
                assert [k.name for k in one_by_one.kernels] == [k.name for k in segment.executable.kernels]
                assert one_by_one.calls == segment.executable.calls
                compared += _equal_tables(one_by_one.table, segment.executable.table)
    assert symbols.values
    assert compared > 8


def _equal_tables(expected: Any, found: Any) -> int:
    """Compare functions, units, sharing and arguments; returns the number of rows."""
    columns = [FUNCTION, UNITS, SHARED, MEETING, NEXT]
    np.testing.assert_array_equal(found.rows[: len(expected.rows), columns], expected.rows[:, columns])
    for row, entry in zip(found.rows, expected.entries, strict=True):
        words = _words(row[ARGUMENTS], len(entry.arguments), ctypes.c_uint64)
        tables = {array.ctypes.data: array.nbytes for array in entry.keep}
        for word, other in zip(words.tolist(), entry.arguments.tolist(), strict=True):
            if _place(word, found) != _place(other, expected):  # tables that a selection computes for itself
                a, b = (_words(at, tables[other], ctypes.c_uint8) for at in (word, other))
                np.testing.assert_array_equal(a, b)
        assert _place(int(row[AHEAD]), found) == _place(entry.ahead[0], expected)
    assert found.stride == expected.stride
    return len(expected.entries)


def _words(address: int, count: int, kind: Any) -> Array:
    return np.ctypeslib.as_array((kind * count).from_address(int(address))).copy()


def _place(word: int, table: Any) -> object:
    """A word; an address of temporary memory as an offset, as each table has separate memory."""
    start = table.temporary.ctypes.data
    return ("temporary", word - start) if 0 <= word - start < table.temporary.size else word
