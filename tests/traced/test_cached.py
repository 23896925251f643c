"""Traced plans from the cache serve other shapes without the graph, and give the same results."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import irload
from irload.core import element as et
from irload.core.tensor import Array
from irload.model import Model
from irload.model_cache.cached_dynamic import CachedDynamicModel
from irload.plan.ir.steps import SampleSumStep
from irload.plan.traced import planning
from irload.runtime.compiled_model import CompiledModel
from irload.safety.private_folder import PrivateFolder
from tests.harness.tiers import tiered
from tests.plan.compressed_weights import Weights
from tests.plan.graphs import Net
from tests.traced.files import is_light, saved, values
from tests.traced.nets import encoder, fully_convolutional
from tests.traced.states import Decoder

Feed = Sequence[Array]


pytestmark = pytest.mark.usefixtures("folder")


def results(compiled: CompiledModel, feeds: Sequence[Feed]) -> list[list[Array]]:
    request = compiled.create_infer_request()
    return [list(request.infer(list(feed)).values()) for feed in feeds]


def agree(
    path: Path,
    first: Sequence[Feed],
    later: Sequence[Feed],
    refuse: Callable[[], None],
    tolerance: float = 1e-4,
    precision: str = "f32",
) -> None:
    """Fill the cache by some inferences, then compare others with a compiled model bit by bit, and with a plain one."""
    own = irload.compile_model(path, 1, precision=precision)
    results(own, first)
    plain = results(irload.compile_model(path, 1, optimize=False), later)
    expected = results(own, later)
    compiled = irload.compile_model(path, 1, precision=precision)
    assert type(compiled) is CachedDynamicModel
    assert compiled._stored is not None
    assert compiled._stored._options == own._traced._options, "kernels depend on them and would be compiled again"
    refuse()
    for feed, a, b, c in zip(later, results(compiled, later), expected, plain, strict=True):
        for x, y, z in zip(a, b, c, strict=True):
            np.testing.assert_array_equal(x, y, str([g.shape for g in feed]))
            np.testing.assert_allclose(x, z, rtol=tolerance, atol=tolerance * float(np.abs(z).max(initial=0)))


def compressed(element: et.ElementType) -> Model:
    net = Net()
    groups = 0 if element is et.f16 else 3
    weights = Weights(element, 400, 96, groups, groups > 0, "f32").of(net)
    return net.model(net.op("MatMul", net.input(-1, 96), weights, transpose_a=False, transpose_b=True))


def half() -> Model:
    net = Net()
    x = net.op("Convert", net.input(-1, 48), destination_type="f16")
    weights = net.constant(values(48, 48).astype(np.float16))
    x = net.op("SoftMax", net.op("MatMul", x, weights, transpose_a=False, transpose_b=False), axis=1)
    return net.model(net.op("Convert", x, destination_type="f32"))


MODELS: dict[str, tuple[Callable[[], Model], Callable[[int], tuple[int, ...]]]] = {
    "encoder": (encoder, lambda n: (1 + n % 3, n, 32)),
    "images": (fully_convolutional, lambda n: (2, 3, 2 * n, 4 * n)),
    "u4": (lambda: compressed(et.u4), lambda n: (n, 96)),
    "f16": (lambda: compressed(et.f16), lambda n: (n, 96)),
    "half": (half, lambda n: (n, 48)),
}


@pytest.mark.one_in(2)
@pytest.mark.parametrize("name", MODELS)
def test_other_shapes(name: str, tmp_path: Path, refusing: Callable[[], None]) -> None:
    make, shape = MODELS[name]
    first, later = ([[values(*shape(n), seed=n)] for n in lengths] for lengths in ((14, 20), (26, 8, 38, 20)))
    agree(saved(make(), tmp_path), first, later, refusing, 1e-2 if name == "half" else 1e-4)


@pytest.mark.parametrize("element", [et.u4, et.f16])
def test_data_that_are_copied(element: et.ElementType, tmp_path: Path, refusing: Callable[[], None]) -> None:
    """precision="auto" quantizes the data for u4 weights, and rounds them to bf16 for f16 weights if supported."""
    first, later = ([[values(n, 96, seed=n)] for n in lengths] for lengths in ((14, 20), (26, 8, 38, 20)))
    agree(saved(compressed(element), tmp_path), first, later, refusing, 0.02, "auto")


def test_lengths_and_images_that_are_checked(tmp_path: Path, refusing: Callable[[], None]) -> None:
    """The checks are operations of plans only, and are stored with them."""
    net = Net()
    x, state, lengths = net.input(-1, -1, 8), net.input(-1, 1, 8), net.integers(-1)
    weights = [net.weights(1, 24, 8), net.weights(1, 24, 8), net.weights(1, 24)]
    gru = {"version": "opset5", "hidden_size": 8, "direction": "forward"}
    y = net.op("GRUSequence", x, state, lengths, *weights, outputs=2, **gru)
    maps, regions, images = net.conv(net.input(-1, 8, -1, -1), 8, 16), net.input(-1, 4), net.integers(-1)
    roi = {"pooled_h": 2, "pooled_w": 2, "sampling_ratio": 2, "spatial_scale": 1.0, "mode": "avg"}
    path = saved(net.model(y, net.op("ROIAlign", maps, regions, images, version="opset3", **roi)), tmp_path)

    def feed(n: int) -> Feed:
        sequences = [values(3, n, 8), values(3, 1, 8), np.array([n, 0, n // 2])]
        return [*sequences, values(2, 8, n, n + 4), np.abs(values(n, 4)) * n, np.arange(n) % 2]

    agree(path, [feed(9), feed(12)], [feed(14), feed(20)], refusing)
    wrong = feed(14)
    for k in (2, 5):
        given = [*wrong[:k], wrong[k] + 100, *wrong[k + 1 :]]
        with pytest.raises(irload.IRError, match=r"in 0\.\.14, found|batch element 100, found 2"):
            irload.compile_model(path, 1)(given)


def test_deformable_convolutions(tmp_path: Path, refusing: Callable[[], None]) -> None:
    """The positions of windows are computed from sizes, also if their padding depends on sizes."""
    net = Net()
    x, offsets, mask = net.input(-1, 8, -1, -1), net.input(-1, 36, -1, -1), net.input(-1, 18, -1, -1)
    deform = {"strides": "2,3", "dilations": "1,2", "deformable_group": 2, "version": "opset8"}
    pads = {"pads_begin": "0,0", "pads_end": "0,0", "auto_pad": "same_upper", "bilinear_interpolation_pad": True}
    y = net.op("DeformableConvolution", x, offsets, net.weights(4, 8, 3, 3), mask, **deform, **pads)
    path = saved(net.model(y), tmp_path)

    def feed(n: int) -> Feed:
        size = -(-n // 2), -(-(n + 5) // 3)
        return [values(2, 8, n, n + 5), 3 * values(2, 36, *size), values(2, 18, *size)]

    compiled = irload.compile_model(path, 1, cache=False)
    results(compiled, [feed(9), feed(12)])
    (variant,) = compiled._traced.families.recent
    assert [type(step) for step in variant.planned.program.steps].count(SampleSumStep) == 1
    agree(path, [feed(9), feed(12)], [feed(14), feed(20), feed(21)], refusing)


@pytest.mark.parametrize("seed", range(tiered(1, 3)))
def test_random_decoders(seed: int, tmp_path: Path, refusing: Callable[[], None]) -> None:
    decoder = Decoder(seed)

    def conversation(prompt: int, batch: int) -> Iterator[Feed]:
        length = 0
        for rows in (prompt, 1, 1, 3, 1):
            length += rows
            feed = [values(batch, rows, decoder.width, seed=length)]
            if decoder.mask is not None:
                feed.append(np.ones((batch, length), np.int64))
            if decoder.beam is not None:
                feed.append(np.arange(batch, dtype=np.int32))
            yield feed

    agree(saved(decoder.model, tmp_path), [*conversation(5, 2)], [*conversation(9, 3)], refusing)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model with a traced plan in the cache."""
    file = saved(encoder(1), tmp_path)
    results(irload.compile_model(file, 1), [[values(1, n, 32)] for n in (10, 20)])
    return file


def test_a_shape_that_no_plan_serves_reads_the_model(path: Path) -> None:
    compiled, own = irload.compile_model(path, 1), irload.compile_model(path, 1, cache=False)
    assert type(compiled) is CachedDynamicModel
    for shape in ((1, 30, 32), (4, 5, 32), (1, 1, 32), (2, 30, 32), (4, 9, 32)):
        np.testing.assert_array_equal(compiled(values(*shape))[0], own(values(*shape))[0])
    with pytest.raises(irload.IRError, match="cannot broadcast"):
        compiled(values(1, 65, 32))
    again = irload.compile_model(path, 1)
    np.testing.assert_array_equal(again(values(3, 7, 32))[0], own(values(3, 7, 32))[0])
    assert is_light(again), "the plan of other patterns of dims is stored, too"


def test_other_uses_read_the_model(path: Path) -> None:
    compiled, own = irload.compile_model(path, 1), irload.compile_model(path, 1, cache=False)
    x = values(1, 12, 32)
    assert [str(p) for p in (*compiled.inputs, *compiled.outputs)] == [str(p) for p in (*own.inputs, *own.outputs)]
    assert is_light(compiled)
    own(values(1, 20, 32))
    own(x)
    assert [s.kernel for s in compiled.profile(x, 1)] == [s.kernel for s in own.profile(x, 1)]
    assert compiled.explain(x).partition("\n")[0] == own.explain(x).partition("\n")[0]
    assert [name for name, _ in compiled.intermediates(x)] == [name for name, _ in own.intermediates(x)]
    compiled.prepare(x)
    np.testing.assert_array_equal(compiled(x)[0], own(x)[0])


def test_variables_are_kept_when_the_model_is_read(tmp_path: Path) -> None:
    decoder = next(d for d in map(Decoder, range(20)) if d.mask is None and d.beam is None)
    path = saved(decoder.model, tmp_path)
    feeds = [[values(2, rows, decoder.width, seed=rows)] for rows in (5, 1)]
    results(irload.compile_model(path, 1), feeds)
    first, own = (irload.compile_model(path, 1, cache=cache).create_infer_request() for cache in (True, False))
    for feed in (*feeds, [values(2, 3, decoder.width)], feeds[1]):
        np.testing.assert_array_equal(first.infer(feed)[0], own.infer(feed)[0])
    states = [{s.name: s.state for s in request.query_state()} for request in (first, own)]
    assert states[0].keys() == states[1].keys()
    for name, state in states[0].items():
        np.testing.assert_array_equal(state, states[1][name])


def test_damaged_files_are_replaced(path: Path, folder: PrivateFolder) -> None:
    wanted = irload.compile_model(path, 1)(values(1, 33, 32))[0]
    files = {file: file.read_bytes() for file in folder.folder.iterdir()}
    assert len(files) == 3, "a description of the model, the plan of the first shape, and a traced plan"
    for file, data in files.items():
        for place in (0, 30, len(data) // 2, len(data) - 1):
            file.write_bytes(data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :])
            compiled = irload.compile_model(path, 1)
            for n in (10, 20):
                compiled(values(1, n, 32))
            np.testing.assert_array_equal(compiled(values(1, 33, 32))[0], wanted)
            assert {file: file.read_bytes() for file in folder.folder.iterdir()}.keys() == files.keys()
    assert type(irload.compile_model(path, 1)) is CachedDynamicModel


def test_the_plan_of_another_model_is_rejected(path: Path, tmp_path: Path, folder: PrivateFolder) -> None:
    """A file with a valid digest under another key."""
    first = {file.name: file.read_bytes() for file in folder.folder.iterdir()}
    (tmp_path / "other").mkdir()
    other = saved(encoder(2), tmp_path / "other")
    compiled = irload.compile_model(other, 1)
    x = values(1, 33, 32)
    results(compiled, [[values(1, n, 32)] for n in (10, 20)])
    for file in [file for file in folder.folder.iterdir() if file.name not in first]:
        kept = file.read_bytes()
        for data in first.values():
            file.write_bytes(data)
            np.testing.assert_allclose(irload.compile_model(other, 1)(x)[0], compiled(x)[0], rtol=1e-5, atol=1e-5)
        file.write_bytes(kept)


@pytest.mark.parametrize("change", ["weights", "threads", "sources", "precise"])
def test_identity(change: str, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"threads": 1}
    if change == "weights":
        beside = path.with_suffix(".bin")
        status = os.stat(beside)
        beside.write_bytes(bytes(b ^ (k == 1000) for k, b in enumerate(beside.read_bytes())))
        os.utime(beside, ns=(status.st_atime_ns, status.st_mtime_ns))
    elif change == "sources":
        monkeypatch.setattr("irload.model_cache.identity.stamp", lambda: "other files")
    else:
        options |= {change: 2 if change == "threads" else True}
    assert type(irload.compile_model(path, **options)) is CompiledModel


def test_weights_that_change_after_loading(path: Path) -> None:
    compiled = irload.compile_model(path, 1)
    path.with_suffix(".bin").write_bytes(bytes(1 << 16))
    with pytest.raises(irload.ReadError, match="has changed since it was compiled; compile it again"):
        compiled(values(1, 30, 32))


def test_an_edited_model_stores_nothing(tmp_path: Path, folder: PrivateFolder) -> None:
    path = saved(encoder(1), tmp_path)
    compiled = irload.compile_model(path, 1)
    node = next(n for n in compiled.model.nodes if n.type == "Gelu")
    node.op = type(node.op)(approximation_mode="tanh")
    results(compiled, [[values(1, n, 32)] for n in (10, 20, 30)])
    assert folder.contents().count == 0


def test_plans_refer_to_weights_of_the_file(
    tmp_path: Path, folder: PrivateFolder, refusing: Callable[[], None]
) -> None:
    """Weights with another shape, and scaled ones, are computed from the file again."""
    net = Net()
    pads = {"pads_begin": "1,1", "pads_end": "1,1"}
    x = net.op("Multiply", net.conv(net.input(1, 64, -1, -1), 64, 96, 3, **pads), net.weights(1, 96, 1, 1))
    path = saved(net.model(net.conv(net.op("ReLU", x), 96, 64, 1)), tmp_path)
    agree(path, *([[values(1, 64, n, n + 3)] for n in sizes] for sizes in ((20, 24), (28, 21))), refusing)
    first, *traced = sorted((file.stat().st_size for file in folder.folder.iterdir()), reverse=True)
    assert first > path.with_suffix(".bin").stat().st_size, "the plan of the first shape contains packed weights"
    assert sum(traced) < path.with_suffix(".bin").stat().st_size / 4


def test_many_plans_of_one_pattern(tmp_path: Path, folder: PrivateFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each stored plan serves the shapes that pass its guards."""
    path = saved(encoder(1), tmp_path)
    with monkeypatch.context() as patch:
        planned = planning.traced_program

        def specialised(part: Any, trace: Any, options: Any, **how: Any) -> planning.TracedProgram:
            trace.holds("==", {(0,): 1, (): -trace.hints[0]})
            return planned(part, trace, options, **how)

        patch.setattr(planning, "traced_program", specialised)
        results(irload.compile_model(path, 1), [[values(1, n, 32)] for n in (10, 20, 30)])
    assert folder.contents().count == 4, "a description, the plan of 10, and traced plans of 20 and 30"
    compiled = irload.compile_model(path, 1)
    own = irload.compile_model(path, 1, cache=False)
    for n in (30, 20):
        np.testing.assert_allclose(compiled(values(1, n, 32))[0], own(values(1, n, 32))[0], rtol=1e-5, atol=1e-5)
    assert is_light(compiled)
    compiled(values(1, 10, 32))
    assert not is_light(compiled)
