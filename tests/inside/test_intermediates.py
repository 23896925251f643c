"""compiled.intermediates: every layer's outputs in order, in bodies by iteration; and their dumps."""

from __future__ import annotations

import gc
import json
import threading
import weakref

import numpy as np
import pytest

import irload
from irload.diagnostics.dump import INDEX
from irload.runtime.observation import Visit, values
from models.ir import Graph
from tests.inside.nets import branched, iterated, looped, model, plain, unary, with_constant

X = np.array([[1, 2], [3, 4], [5, 6]], np.float32)


def doubled(g, x):
    return unary(g, "Relu", with_constant(g, "Multiply", x, 2, "double"), "relu")


def test_layers_are_listed_in_order_with_their_values():
    tensors = list(irload.compile_model(plain(doubled, "f32", X.shape)).intermediates(X))
    assert [name for name, _ in tensors] == ["double", "relu"]
    assert all((array == 2 * X).all() and not array.flags.writeable for _, array in tensors)


@pytest.mark.parametrize(
    ("make", "extra", "names"),
    [
        (looped, {}, [*(f"loop/body[{k}]/{n}" for k in range(4) for n in ("double", "relu")), "loop"]),
        (iterated, {}, [*(f"ti/body[{k}]/{n}" for k in range(3) for n in ("double", "relu")), "ti"]),
        (branched, {"condition": np.array([True])}, ["if/then_body/double", "if/then_body/relu", "if"]),
        (branched, {"condition": np.array([False])}, ["if"]),
    ],
)
def test_bodies_are_named_by_iteration(make, extra, names):
    compiled = irload.compile_model(make(doubled, "f32", X.shape))
    tensors = dict(compiled.intermediates({"x": X, **extra}))
    assert list(tensors) == names
    assert np.array_equal(tensors[names[-1]], compiled({"x": X, **extra})[0])


def test_values_of_iterations_differ():
    tensors = dict(irload.compile_model(looped(doubled, "f32", X.shape)).intermediates(X, "loop/body[[]*[]]/double"))
    assert [tensors[f"loop/body[{k}]/double"][0, 0] for k in range(4)] == [2, 4, 8, 16]
    assert len(tensors) == 4


@pytest.mark.parametrize(("layers", "count"), [("double", 4), ("loop", 1), (["re*", "loop"], 5)])
def test_layers_are_chosen_by_pattern(layers, count):
    compiled = irload.compile_model(looped(doubled, "f32", X.shape))
    assert len(list(compiled.intermediates(X, layers))) == count


def test_a_pattern_that_no_layer_matches_is_an_error():
    compiled = irload.compile_model(looped(doubled, "f32", X.shape))
    with pytest.raises(irload.InputInvalid, match=r"no layer that ran matches 'loop/body\[1\]/\*', 'b'; irrun inspect"):
        list(compiled.intermediates(X, ["loop/body[1]/*", "b"]))  # [1] matches the character 1


def test_layers_of_equal_names_are_distinguished():
    g = Graph()
    x = g.parameter("x", "f32", X.shape)
    out = unary(g, "Relu", unary(g, "Negative", x, "twin"), "twin")
    assert [n for n, _ in irload.compile_model(model(g, out)).intermediates(X)] == ["twin#1", "twin#2"]


def test_outputs_of_one_layer_are_numbered():
    g = Graph()
    x = g.parameter("x", "f32", [4])
    first, _ = g.layer(
        "Split", [x, g.constant(0)], [("f32", [2]), ("f32", [2])], name="s", attributes={"num_splits": 2}
    )
    tensors = dict(irload.compile_model(model(g, first)).intermediates(np.arange(4, dtype=np.float32)))
    assert tensors["s:1"].tolist() == [2, 3]


def test_intermediates_are_released():
    def chain(g, x):
        for k in range(20):
            x = with_constant(g, "Add", x, 1, f"a{k}")
        return x

    alive: list[weakref.ref] = []
    most = 0
    for _, array in irload.compile_model(plain(chain, "f32", X.shape)).intermediates(X):
        alive.append(weakref.ref(array.base))
        del array
        gc.collect()
        most = max(most, sum(ref() is not None for ref in alive))
    assert len(alive) == 20
    assert most <= 3


def test_a_loop_may_be_left():
    before = threading.active_count()
    rows = irload.compile_model(looped(doubled, "f32", X.shape)).intermediates(X)
    assert next(rows)[0] == "loop/body[0]/double"
    rows.close()
    assert threading.active_count() == before


def test_errors_of_the_run_arrive():
    compiled = irload.compile_model(looped(doubled, "f32", X.shape), limits=irload.Limits(iterations=2))
    with pytest.raises(irload.LimitExceeded, match="iterations"):
        list(compiled.intermediates(X))
    with pytest.raises(irload.InputInvalid):
        list(compiled.intermediates(X[:1]))


def test_states_stay_as_they_are():
    compiled = irload.compile_model("models/state/model.xml")
    step = np.array([[1, 2, 3]], np.float32)
    compiled(step)
    seen = [dict(compiled.intermediates(step)) for _ in range(2)]
    assert all(any(np.array_equal(a, [[2, 4, 6]]) for a in tensors.values()) for tensors in seen)
    assert compiled(step)[0].tolist() == [[2, 4, 6]]


# -- dumps -------------------------------------------------------------------------------------------------------------


def hostile(g, x):
    for k, name in enumerate(["../../up", "con", "a/b", "A_B", "index.json", "ä\n"]):
        x = with_constant(g, "Add", x, k, name)
    return x


def test_names_of_files_are_safe(tmp_path):
    compiled = irload.compile_model(plain(hostile, "f32", X.shape))
    entries = irload.dump_intermediates(compiled, X, tmp_path / "d")
    files = sorted(f.name for f in (tmp_path / "d").iterdir())
    assert len({f.lower() for f in files}) == 7
    assert list(tmp_path.iterdir()) == [tmp_path / "d"]
    assert sorted([*(e.file for e in entries), INDEX]) == files
    index = json.loads((tmp_path / "d" / INDEX).read_text())["arrays"]
    assert [a["name"] for a in index] == ["../../up", "con", "a/b", "A_B", "index.json", "ä\n"]
    for entry, (name, array) in zip(index, compiled.intermediates(X), strict=True):
        assert entry["name"] == name
        assert entry["shape"] == list(array.shape)
        assert np.array_equal(np.load(tmp_path / "d" / entry["file"]), array)


def test_dumps_stay_within_their_limit(tmp_path):
    limits = irload.Limits(dump_bytes=1000)
    compiled = irload.compile_model(looped(doubled, "f32", X.shape), limits=limits)
    with pytest.raises(irload.LimitExceeded, match="dump_bytes"):
        irload.dump_intermediates(compiled, X, tmp_path)
    written = json.loads((tmp_path / INDEX).read_text())["arrays"]
    assert sorted([*(a["file"] for a in written), INDEX]) == sorted(f.name for f in tmp_path.iterdir())
    assert sum((tmp_path / a["file"]).stat().st_size for a in written) <= 1000


def test_folders_are_not_overwritten(tmp_path):
    compiled = irload.compile_model(plain(doubled, "f32", X.shape))
    irload.dump_intermediates(compiled, X, tmp_path)
    with pytest.raises(FileExistsError, match="not empty"):
        irload.dump_intermediates(compiled, X, tmp_path)
    assert len(irload.dump_intermediates(compiled, X, tmp_path, "relu", force=True)) == 1


def test_meaningless_patterns_are_rejected(tmp_path):
    compiled = irload.compile_model(plain(doubled, "f32", X.shape))
    with pytest.raises(irload.InputInvalid, match="no layer that ran matches 'nothing'"):
        irload.dump_intermediates(compiled, X, tmp_path / "d", "nothing")
    assert not (tmp_path / "d").exists()


def test_a_dump_without_an_array_leaves_no_folder(tmp_path):
    model = plain(doubled, "f32", X.shape)
    with pytest.raises(irload.InputInvalid, match="has shape"):
        irload.dump_intermediates(irload.compile_model(model), X[..., 1:], tmp_path / "d")
    with pytest.raises(irload.LimitExceeded):
        irload.dump_intermediates(irload.compile_model(model, limits=irload.Limits(dump_bytes=1)), X, tmp_path / "d")
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize("ahead", [0, 1 << 20])
def test_a_run_prefetches_up_to_its_limit(ahead):
    """Outputs computed before a failure are returned, then the failure is raised; a closed iterator ends the run."""
    prefetched: list[int] = []

    def run(observe):
        node = next(n for n in net.nodes if n.name == "relu")
        for k in range(3):
            prefetched.append(k)
            observe(Visit(str(k), node, [], [node.outputs[0].type], [X + k]))
        raise ValueError("the end")

    net = plain(doubled, "f32", X.shape)
    pairs = values(run, (), ahead=ahead)
    assert next(pairs)[0] == "0"
    assert len(prefetched) == (3 if ahead else 1)
    assert [next(pairs)[0], next(pairs)[0]] == ["1", "2"]
    with pytest.raises(ValueError, match="the end"):
        next(pairs)
    stopped = values(run, (), ahead=ahead)
    next(stopped)
    stopped.close()
    assert not any(t.name == "irload-intermediates" for t in threading.enumerate())
