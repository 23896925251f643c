"""A few random programs, saved regressions, and the generator, the tolerances and the shrinking themselves."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irload
from irload.plan.wide import SHORT
from tests.fuzz.programs import near
from tests.fuzz.programs.__main__ import Tally, outcomes
from tests.fuzz.programs.graph import ir
from tests.fuzz.programs.make import make
from tests.fuzz.programs.play import Wrong, in_short, plainly, play
from tests.fuzz.programs.replay import replayed
from tests.fuzz.programs.shrink import shrunk
from tests.fuzz.programs.thresholds import lowered_thresholds
from tests.fuzz.programs.widened import rounded_inside
from tests.harness.tiers import tiered

COUNT, SEED = tiered(16, 300), 2028
BF16_COUNT, BF16_SEED = tiered(4, 40), 13
REGRESSIONS = sorted((Path(__file__).parent / "regressions" / "programs").glob("*.xml"))


@pytest.mark.parametrize("file", REGRESSIONS, ids=lambda file: file.stem)
def test_regressions(file):
    assert replayed(file) == []


def test_random_programs(tmp_path):
    tally = Tally(SEED)
    for outcome in outcomes(COUNT, SEED, tmp_path, share=0.1):
        tally.add(outcome)
    assert tally.failures == [], tally.text(tmp_path)
    assert tally.count == COUNT
    assert tally.outputs["exact"] > COUNT / 3
    assert tally.outputs["blunt"] < 0.2 * tally.outputs["outputs"]
    assert sum(tally.refused.values()) < 0.1 * COUNT
    assert tally.runtime["agrees"] > COUNT // 100


def test_random_programs_in_bf16(tmp_path, monkeypatch):
    """On processors without bf16 instructions, kernels compute in f32, which is at least as accurate."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    tally = Tally(BF16_SEED)
    for outcome in outcomes(BF16_COUNT, BF16_SEED, tmp_path, share=0, precision="bf16"):
        tally.add(outcome)
    assert tally.failures == [], tally.text(tmp_path)
    assert tally.count == BF16_COUNT
    assert tally.outputs["blunt"] < 0.15 * tally.outputs["outputs"]


def test_the_same_seed_makes_the_same():
    for index in range(10):
        assert ir(make(3, index)) == ir(make(3, index))
    assert ir(make(3, 0)) != ir(make(4, 0))


def test_programs_are_of_all_kinds():
    programs = [make(5, k) for k in range(200)]
    types = {layer.type for graph in programs for layer in graph.layers}
    for type in (
        *("Convolution", "GroupConvolution", "ConvolutionBackpropData", "MaxPool", "AvgPool", "Interpolate", "MatMul"),
        *("Concat", "Split", "VariadicSplit", "Transpose", "Reshape", "Gather", "Slice", "Pad", "FakeQuantize", "MVN"),
        *("GroupNormalization", "ScaledDotProductAttention", "Softmax", "Loop", "If", "TensorIterator", "ReadValue"),
        *("Convert", "ReduceMean", "Select", "GridSample"),
    ):
        assert type in types
    assert any(graph.dynamic for graph in programs)
    traits = {trait for graph in programs for trait in graph.traits}
    assert traits == {"precise", "lowered", "odd", "short"}
    assert all(graph.results for graph in programs)
    assert max(graph.work for graph in programs) >= 25
    assert any(graph.layers[r.layer].name.startswith("exact_") for graph in programs for r in graph.results)


@pytest.mark.one_in(2)
@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize(("precision", "share"), [("f32", 0.02), ("bf16", 2.0)])
def test_a_wrong_number_is_detected(precision, share, index):
    programs = (make(15, k, precision) for k in range(60))
    graph = [g for g in programs if not any(e.dtype in SHORT for x in g.layers for e, _ in x.types)][index]
    model = irload.read_model(*ir(graph))
    expected = plainly(model, near.ROUNDINGS[precision])
    good = [r for r in expected.results if not isinstance(r, str)]
    for k, array in enumerate(good[0]):
        wrong = array.copy()
        flat = wrong.reshape(-1)
        if flat.dtype.kind == "f" and flat.size:
            flat[-1] += max(share * near.scale(array), 1e-3)
            assert near.differs(array, wrong, expected.tolerances[k])
        assert near.differs(array, array.copy(), expected.tolerances[k]) is None


def test_rounding_is_measured_again_before_a_difference_counts():
    """A tolerance that is too small by chance is corrected; a wrong number is still reported."""
    results = (plainly(irload.read_model(*ir(make(11, k)))) for k in range(60))
    sharp = ((e, k) for e in results for k, t in enumerate(e.tolerances) if 0 < t < 1e-3 * near.scale(e.results[0][k]))
    expected, k = next(sharp)
    plain = expected.results[0][k]
    expected.tolerances[k] = 1e-30
    assert expected.differs(k, plain, plain * np.float32(1 + 2.0**-22)) is None
    assert expected.tolerances[k] > 1e-30
    expected.tolerances[k] = 1e-30
    assert expected.differs(k, plain, plain + np.float32(0.1) * near.scale(plain))


@pytest.mark.parametrize("element", ["f16", "bf16"])
def test_programs_in_16_bits_are_held_to_their_twins_in_f32(element):
    """The rounded result passes; a result that differs by eight units in the last place of the 16-bit type fails."""
    programs = (g for g in (make(13, k) for k in range(200)) if "short" in g.traits and "odd" not in g.traits)
    sharp = 0
    for graph in programs:
        xml, blob = ir(graph)
        model = irload.read_model(xml, blob)
        if model.inputs[0].element_type.name != element or rounded_inside(model):
            continue
        expected = in_short(model, xml, blob)
        for k, plain in enumerate(expected.results[0]):
            dtype = model.outputs[k].element_type.dtype
            if dtype not in SHORT or not plain.size:
                continue
            fast = plain.astype(dtype)
            assert near.differs(plain, fast, expected.tolerances[k]) is None
            at = int(np.abs(plain).argmax())
            fast.reshape(-1)[at] *= 1 + 8 * near.UNITS[fast.dtype.name]
            sharp += near.differs(plain, fast, expected.tolerances[k]) is not None
        if sharp >= 5:
            return
    assert sharp >= 5


def test_thresholds_are_brought_down_and_back():
    from irload.plan.backends.numpy.kernels import matmul, winograd

    before = matmul.PRODUCTS, winograd.suits
    with lowered_thresholds():
        assert matmul.PRODUCTS < 100
        assert winograd.suits is winograd.can
    assert (matmul.PRODUCTS, winograd.suits) == before


def test_a_failing_program_is_shrunk():
    programs = (make(7, k) for k in range(100))
    graph = next(g for g in programs if any(g.layers[r.layer].type == "Transpose" for r in g.results))
    small = shrunk(graph, lambda g: any(x.type == "Transpose" for x in g.layers))
    assert [x.type for x in small.layers if x.type not in ("Parameter", "Const")] == ["Transpose"]
    play(*ir(small))


def test_a_wrong_kernel_is_detected(monkeypatch):
    monkeypatch.setenv("IRLOAD_JIT", "off")  # a NumPy kernel
    from irload.plan.backends.numpy.kernels import instructions as elementwise

    monkeypatch.setitem(elementwise.TABLE, "add", elementwise.TABLE["subtract"])
    graph = next(g for g in (make(3, k) for k in range(60)) if any(g.layers[r.layer].type == "Add" for r in g.results))
    with pytest.raises(Wrong) as wrong:
        play(*ir(graph), threads=(1,))
    assert wrong.value.kind == "differs"
