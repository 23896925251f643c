from __future__ import annotations

from pathlib import Path

import pytest

import irload
from tests.fuzz.programs import near
from tests.fuzz.programs.__main__ import Tally, outcomes
from tests.fuzz.programs.graph import ir
from tests.fuzz.programs.make import make
from tests.fuzz.programs.play import Wrong, plainly, play
from tests.fuzz.programs.replay import replayed
from tests.fuzz.programs.shrink import shrunk
from tests.fuzz.programs.thresholds import lowered

COUNT, SEED = 300, 2026
REGRESSIONS = sorted((Path(__file__).parent / "regressions" / "programs").glob("*.xml"))


@pytest.mark.parametrize("file", REGRESSIONS, ids=lambda file: file.stem)
def test_what_once_was_wrong(file):
    assert replayed(file) == []


def test_random_programs(tmp_path):
    tally = Tally(SEED)
    for found in outcomes(COUNT, SEED, tmp_path):
        tally.add(found)
    assert tally.failures == [], tally.text(tmp_path)
    assert tally.count == COUNT
    assert tally.outputs["exact"] > 100
    assert tally.outputs["blunt"] < 0.15 * tally.outputs["outputs"]
    assert sum(tally.refused.values()) < 0.1 * COUNT
    assert tally.runtime["agrees"] > 3


def test_random_programs_in_bf16(tmp_path, monkeypatch):
    """Where the processor multiplies them. Elsewhere kernels compute in f32, which is as near."""
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    tally = Tally(SEED)
    for found in outcomes(40, SEED, tmp_path, share=0, precision="bf16"):
        tally.add(found)
    assert tally.failures == [], tally.text(tmp_path)
    assert tally.count == 40
    assert tally.outputs["blunt"] < 0.15 * tally.outputs["outputs"]


def test_the_same_seed_makes_the_same():
    for index in range(10):
        assert ir(make(3, index)) == ir(make(3, index))
    assert ir(make(3, 0)) != ir(make(4, 0))


def test_programs_are_of_all_kinds():
    programs = [make(5, k) for k in range(150)]
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
    assert traits == {"precise", "lowered", "odd"}
    assert all(graph.results for graph in programs)
    assert max(graph.work for graph in programs) >= 25
    assert any(graph.layers[r.layer].name.startswith("exact_") for graph in programs for r in graph.results)


@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize(("precision", "share"), [("f32", 0.02), ("bf16", 2.0)])
def test_a_wrong_number_is_noticed(precision, share, index):
    graph = make(11, index, precision)
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


def test_thresholds_are_brought_down_and_back():
    from irload.plan.backends.numpy.kernels import matmul, winograd

    before = matmul.PRODUCTS, winograd.suits
    with lowered():
        assert matmul.PRODUCTS < 100
        assert winograd.suits is winograd.can
    assert (matmul.PRODUCTS, winograd.suits) == before


def test_a_failing_program_is_shrunk():
    graph = next(g for g in (make(7, k) for k in range(100)) if any(x.type == "Transpose" for x in g.layers))
    small = shrunk(graph, lambda g: any(x.type == "Transpose" for x in g.layers))
    assert [x.type for x in small.layers if x.type not in ("Parameter", "Const")] == ["Transpose"]
    play(*ir(small))


def test_a_wrong_kernel_is_found(monkeypatch):
    monkeypatch.setenv("IRLOAD_JIT", "off")  # it is a kernel of NumPy's
    from irload.plan.backends.numpy.kernels import instructions as elementwise

    monkeypatch.setitem(elementwise.TABLE, "add", elementwise.TABLE["subtract"])
    graph = next(g for g in (make(2, k) for k in range(60)) if any(g.layers[r.layer].type == "Add" for r in g.results))
    with pytest.raises(Wrong) as wrong:
        play(*ir(graph), threads=(1,))
    assert wrong.value.kind == "differs"
