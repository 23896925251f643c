"""Relocation gives the same tables as compiling every step, word for word."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.shape import Shape
from irload.core.tensor import Array, TensorType
from irload.core.trace import Trace
from irload.model import Model
from irload.options import Options
from irload.plan.backends.compiled import CompiledBackend
from irload.plan.backends.llvm import axes, launching, tuning
from irload.plan.backends.llvm.backend import LlvmBackend
from irload.plan.backends.llvm.kernel import Launch
from irload.plan.backends.llvm.kernels import attention
from irload.plan.backends.llvm.kernels.contraction import heights
from irload.plan.backends.llvm.library import library
from irload.plan.backends.llvm.relocatable import RelocatableSegment
from irload.plan.backends.numpy.backend import NumpyBackend
from irload.plan.backends.registry import compiled_backend
from irload.plan.folding import Folding
from irload.plan.memory.arena import aligned_bytes
from irload.plan.scheduling import schedule_graph
from irload.plan.traced import planning
from irload.plan.traced.binding import ShapeBinding
from irload.plan.traced.pattern import Symbols
from irload.plan.traced.planning import traced_program
from irload.plan.traced.template import Template
from irload.plan.traced.workspace import Workspace
from irload.runtime.variables import read_nodes
from tests.harness.body import Body
from tests.plan.compressed_weights import Weights
from tests.plan.graphs import Net
from tests.plan.llvm.harness import DOTS
from tests.plan.test_variables import WIDTH, decoder
from tests.traced.nets import backbone, encoder, fully_convolutional, pyramid

FUNCTION, ARGUMENTS, UNITS, SHARED, AHEAD, AHEAD_STRIDE = range(6)


def template_of(model: Model, options: Options, *shapes: tuple[int, ...]) -> tuple[Template, Symbols]:
    """The plan of a model, traced at these shapes of its inputs."""
    symbols = Symbols.of([p.output.type.shape for p in model.inputs], shapes)
    types = [TensorType(p.output.type.element, Shape(*s)) for p, s in zip(model.inputs, shapes, strict=True)]
    trace = Trace()
    schedule = schedule_graph(model, symbols.traced(types, trace), Folding())
    assert schedule.part is not None
    return Template(traced_program(schedule.part, trace, options), options, {}), symbols


@pytest.fixture
def backend(monkeypatch: pytest.MonkeyPatch) -> CompiledBackend:
    """The compiled back end of this machine."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    result = compiled_backend(Options())
    if result is None:
        pytest.skip("no compiled kernels")
    return result


@pytest.fixture
def equal_code(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make selections for fixed sizes choose the same code as selections with symbols, which serves more shapes.

    Threads share kernels of few cycles, too, because the cycles at other shapes are estimates.
    """
    monkeypatch.setattr(axes, "SHORT", 0.99)
    monkeypatch.setattr(tuning, "MANY_COLUMNS", 1)
    monkeypatch.setattr(heights, "LONG_LINE", 0)
    monkeypatch.setattr(tuning, "WINOGRAD_EMPTY", 99)
    monkeypatch.setattr(launching, "SHARED_CYCLES", 1)
    monkeypatch.setattr(launching, "TOGETHER_CYCLES", 0)


def test_cycles_are_proportional_to_work(monkeypatch: pytest.MonkeyPatch, backend: CompiledBackend) -> None:
    """Threads share the kernels of a large image bound after a small one, but not the reverse."""
    monkeypatch.setattr(launching, "TOGETHER_CYCLES", 0)
    net = Net()
    model = net.model(net.conv(net.input(1, 3, -1, -1), 3, 16, 3))
    for traced in ((8, 12), (64, 96)):
        template, _ = template_of(model, Options(threads=2, resized=True), (1, 3, *traced))
        workspace = Workspace(template)
        for size in ((8, 12), (64, 96), (9, 8)):
            tables = [each.executable.table for each in workspace.bind(size).segments if each.backend == "llvm"]
            shared = [bool(table.rows[:, SHARED].any()) for table in tables]
            assert shared == [size == (64, 96)]


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize(
    ("make", "shape", "others"),
    [
        (encoder, (2, 17, 32), [(2, 17), (3, 50), (5, 2), (2, 61)]),
        (fully_convolutional, (2, 3, 12, 16), [(2, 12, 16), (5, 12, 16), (2, 20, 24), (2, 31, 16)]),
        (backbone, (1, 3, 64, 96), [(64, 96), (80, 96), (77, 141), (126, 61), (72, 72)]),
    ],
)
@pytest.mark.usefixtures("equal_code")
def test_relocated_tables(
    make: Callable[[], Model],
    shape: tuple[int, ...],
    others: list[tuple[int, ...]],
    threads: int,
    backend: CompiledBackend,
) -> None:
    options = Options(threads=threads, resized=True)
    template, symbols = template_of(make(), options, shape)
    rng = np.random.default_rng(threads)
    turns = [*others, *(others[k] for k in rng.integers(len(others), size=4))]
    assert _compared(template, options, [(values, ()) for values in turns]) > 6 * len(turns)
    assert symbols.values


@pytest.mark.parametrize("values", [[(2, 60), (2, 59), (2, 61), (2, 58)], [(8, 4), (7, 4), (9, 4), (6, 4)]])
def test_other_shapes_change_words_only(values: list[tuple[int, ...]], backend: CompiledBackend) -> None:
    """Once the selections of all groups are traced, tables are changed, not built; four tokens are less than a tile."""
    template, _ = template_of(encoder(), Options(threads=1), (*values[0], 32))
    workspace = Workspace(template)
    plans = [workspace.bind(each) for each in values]
    forms = [segment.executable.form for plan in plans[-2:] for segment in plan.segments]
    assert len(forms) == 2
    assert forms[0] is forms[1]


def test_convolutions_are_selected_with_symbols(backend: CompiledBackend) -> None:
    """Other image sizes run the kernels of the first size with other words in the table, also if memory grows."""
    template, _ = template_of(backbone(), Options(threads=1, resized=True), (1, 3, 64, 96))
    workspace = Workspace(template)
    sizes = [(96, 64), (160, 192), (128, 96), (96, 224), (132, 136), (220, 72)]
    plans = [workspace.bind(values) for values in sizes]
    tables = [segment.executable for plan in plans for segment in plan.segments]
    assert all(part.is_traced for group in tables[0].form.groups for part in group)
    functions = [each.table.rows[:, FUNCTION].tolist() for each in tables]
    assert functions == [functions[0]] * len(sizes)
    assert tables[-1].form is tables[1].form, "rows are ordered again"


def test_products_of_many_panels_are_selected_with_symbols(backend: CompiledBackend) -> None:
    """Tiles prefetch the next panels by a number of bytes that does not depend on the size of the maps."""
    net = Net()
    x = net.conv(net.input(1, 3, -1, -1), 3, 32, 3, pads_begin="1,1", pads_end="1,1")
    model = net.model(net.conv(net.conv(x, 32, 192, 1), 192, 320, 1))
    template, _ = template_of(model, Options(threads=1, resized=True), (1, 3, 64, 96))
    Workspace(template).bind((96, 64))
    segments = [segment for segment in template.prepared if isinstance(segment, RelocatableSegment)]
    assert segments
    assert all(all(segment.traced) for segment in segments)


@pytest.mark.parametrize("way", ["int8", "bf16", "bf16_weights"])
def test_copies_of_data_are_selected_with_symbols(
    way: str, monkeypatch: pytest.MonkeyPatch, backend: CompiledBackend
) -> None:
    """Matmuls read the rows of any number of tokens in i8 or in bf16: one plan, whose selections hold for all."""
    target = replace(DOTS, effort=3) if way != "int8" else None
    offered = [LlvmBackend(target or backend.target, **{way: True}), NumpyBackend()]  # type: ignore[attr-defined]
    monkeypatch.setattr(planning, "backends", lambda options: offered)
    net = Net()
    x = net.input(1, -1, 64)
    for seed in range(3):
        weights = Weights(et.u4, 64, 64, 2).of(net, seed) if way == "int8" else net.weights(64, 64)
        x = net.op("Add", x, net.op("MatMul", x, weights, transpose_a=False, transpose_b=True))
    template, symbols = template_of(net.model(x), Options(threads=1, precision="auto"), (1, 100, 64))
    assert len(symbols.values) == 1
    workspace = Workspace(template)
    for length in (130, 77, 200):
        assert template.holds((length,))
        plan = workspace.bind((length,))
        tables = [segment.executable for segment in plan.segments if hasattr(segment.executable, "form")]
        assert tables
        assert all(part.is_traced for table in tables for group in table.form.groups for part in group)


@pytest.mark.parametrize("size", [(40, 2), (2, 40), (2, 2)])
def test_narrow_maps_are_selected_with_symbols(size: tuple[int, int], backend: CompiledBackend) -> None:
    net = Net()
    x = net.conv(net.input(1, 3, -1, -1), 3, 16, 3, pads_begin="1,1", pads_end="1,1", strides="2,2")
    template, _ = template_of(net.model(net.conv(x, 16, 24, 1)), Options(threads=1, resized=True), (1, 3, 64, 96))
    plan = Workspace(template).bind(size)
    parts = [part for segment in plan.segments for group in segment.executable.form.groups for part in group]
    assert all(part.is_traced for part in parts)


@pytest.mark.parametrize("stride", [2, 3])
def test_transposed_convolutions_are_selected_with_symbols(stride: int, backend: CompiledBackend) -> None:
    """Their tables equal tables for one shape, word for word."""
    net, options = Net(), Options(threads=1, resized=True)
    weights = np.random.default_rng(0).standard_normal((16, 24, 3, 3)).astype(np.float32)
    how = {"strides": f"{stride},{stride}", "dilations": "1,1", "pads_begin": "1,0", "pads_end": "0,1"}
    x = net.conv(net.input(1, 3, -1, -1), 3, 16, 3)
    y = net.op("ConvolutionBackpropData", x, net.constant(weights), **how, output_padding="0,0", auto_pad="explicit")
    template, _ = template_of(net.model(y), options, (1, 3, 24, 36))
    turns: list[tuple[tuple[int, ...], Sequence[int]]] = [(size, ()) for size in ((24, 36), (40, 30), (33, 57))]
    assert _compared(template, options, turns) > 0
    segments = [each for each in template.prepared if isinstance(each, RelocatableSegment)]
    assert all(selections for each in segments for selections in each.traced)


def test_maps_of_one_position(backend: CompiledBackend) -> None:
    """A plan traced for a last map with one position serves other sizes, and the reverse."""
    shapes = [(4, 3), (8, 16), (20, 4), (3, 24)]
    for shape in shapes:
        template, _ = template_of(pyramid(), Options(threads=1, resized=True), (1, 3, *shape))
        assert [template.holds(values) for values in shapes] == [True] * len(shapes)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("packs", [True, False], ids=["packed", "in_place"])
@pytest.mark.usefixtures("equal_code")
def test_relocated_tables_of_a_decoder(
    threads: int, backend: CompiledBackend, monkeypatch: pytest.MonkeyPatch, *, packs: bool
) -> None:
    """Lengths of the past that grow, jump and return, in memory that is sometimes moved.

    Attention packs keys and values, or reads them in place.
    """
    monkeypatch.setattr(attention, "MOST_ROWS", 0 if packs else attention.MOST_ROWS)
    options = Options(threads=threads)
    model = decoder()
    (node,) = read_nodes(model)
    shapes = [p.output.type.shape for p in model.inputs], [Shape(None, None, WIDTH)]
    symbols = Symbols.of([*shapes[0], *shapes[1]], [(2, 1, WIDTH), (2,), (2, 9, WIDTH)])
    types = [*(p.output.type.element for p in model.inputs), node.outputs[0].type.element]
    trace = Trace()
    *traced_types, past = symbols.traced([TensorType(e, Shape(2)) for e in types], trace)
    schedule = schedule_graph(model, traced_types, Folding(), state={node: past})
    assert schedule.part is not None
    template = Template(traced_program(schedule.part, trace, options), options, {})
    assert template.growth is not None
    rng = np.random.default_rng(threads)
    memory = aligned_bytes(1 << 20)
    turns: list[tuple[tuple[int, ...], Sequence[int]]] = []
    length, start = 9, 0
    for _ in range(30):
        length = length + 1 if rng.random() < 0.7 else int(rng.integers(3, 90))
        start = int(rng.integers(8)) << 16 if rng.random() < 0.2 else start
        turns.append(((2, length), [memory.ctypes.data + start]))
    rows = _compared(template, options, turns)
    assert rows > 3 * len(turns) if packs else rows == 3 * len(turns)
    selections = [s for each in template.prepared if isinstance(each, RelocatableSegment) for s in each.traced]
    assert sum(map(bool, selections)) > 1, "the selections of concatenation and attention run for each length"


def _compared(template: Template, options: Options, turns: Sequence[tuple[tuple[int, ...], Sequence[int]]]) -> int:
    """Bind a plan to each set of symbol values and addresses. Returns the number of compared rows."""
    workspace = Workspace(template)
    compared = 0
    for values, external in turns:
        assert template.holds(values)
        plan = workspace.bind(values, external)
        binding = ShapeBinding(workspace, values, template.numbers.evaluate(values), external)
        for (owner, steps), segment in zip(template.segments, plan.segments, strict=True):
            if segment.backend == "llvm":
                concrete = [binding.step(step) for step in steps]
                one_by_one = owner.compile(concrete, binding.memory, options, template.shared)
                assert [k.name for k in one_by_one.kernels] == [k.name for k in segment.executable.kernels]
                assert one_by_one.calls == segment.executable.calls
                compared += _equal_tables(one_by_one.table, segment.executable.table, one_by_one.launches)
    return compared


def _equal_tables(expected: Any, actual: Any, launches: Sequence[Launch]) -> int:
    """Compare functions, units, sharing and arguments; returns the number of rows."""
    columns = [FUNCTION, UNITS, SHARED, AHEAD_STRIDE]
    np.testing.assert_array_equal(actual.rows[: len(expected.rows), columns], expected.rows[:, columns])
    rows = zip(actual.rows, expected.rows, launches, strict=True)
    for row, entry, launch in rows:
        count = len(launch.pointers) + len(launch.kernel.numbers)
        words, others = (_words(each[ARGUMENTS], count, ctypes.c_uint64) for each in (row, entry))
        tables = {array.ctypes.data: array.nbytes for array in launch.keep}
        for word, other in zip(words.tolist(), others.tolist(), strict=True):
            if _place(word, actual) != _place(other, expected):  # private tables of a selection
                a, b = (_words(at, tables[other], ctypes.c_uint8) for at in (word, other))
                np.testing.assert_array_equal(a, b)
        assert _place(int(row[AHEAD]), actual) == _place(int(entry[AHEAD]), expected)
    assert actual.stride == expected.stride
    return len(expected.rows)


def _words(address: int, count: int, kind: Any) -> Array:
    return np.ctypeslib.as_array((kind * count).from_address(int(address))).copy()


def _place(word: int, table: Any) -> object:
    """A word; an address of temporary memory as an offset, as each table has separate memory."""
    start = table.temporary.ctypes.data
    return ("temporary", word - start) if 0 <= word - start < table.temporary.size else word


def test_other_batches_compile_no_convolution(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    net = Net()
    compiled = irload.compile_model(net.model(net.conv(net.conv(net.input(-1, 16, 12, 12), 16, 24, 1), 24, 24, 1)), 1)
    for batch in (2, 3, 5):
        before = library.compiled
        compiled(np.ones((batch, 16, 12, 12), np.float32))
        assert batch == 2 or library.compiled == before, f"batch {batch}"


def test_constants_that_share_memory_in_one_step_only(backend: CompiledBackend) -> None:
    """A file stores equal constants once: the scale of the first normalization is also its shift, but not the second's.

    The steps are selected once, so an address of the first must not stand for both constants of the second.
    """
    graph = Body(bytearray())
    y = graph.parameter(et.f32, "?,4,5,5")
    for scale, shift in (([2, 3, 4, 5], [-9, -8, -7, -6]), ([1, 2, 3, 4], [5, 6, 7, 8])):
        constants = (graph.constant(np.array(c, np.float32)) for c in (scale, shift))
        y = graph.op("GroupNormalization", y, *constants, version="opset12", num_groups=2, epsilon=1e-5)
    graph.result(y)
    xml, weights = graph.model()
    model = irload.read_model(xml.replace(b'offset="16"', b'offset="0"', 1), weights)
    fast, plain = irload.compile_model(model, 1, jit=True), irload.compile_model(model, 1, optimize=False)
    for batch in (2, 3, 1):
        x = np.random.default_rng(batch).standard_normal((batch, 4, 5, 5)).astype(np.float32)
        np.testing.assert_allclose(fast(x)[0], plain(x)[0], rtol=1e-4, atol=1e-4)
