"""Values of files, tables and programs are cast to the model's types: safely, or only on request."""

from __future__ import annotations

import json

import ml_dtypes
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from irload.batch import predict
from irload.batch.casting import cast
from irload.batch.parquet import open_parquet
from irload.core.element import ELEMENTS
from irload.core.shape import Shape
from irload.core.tensor import TensorType
from irload.errors import InputInvalid
from irload.graph import Node, Output, Port
from irload.read import read_graph
from irrun.main import FINDINGS, USAGE
from tests.batch.kill import MODEL, digits
from tests.batch.models import identity

BY_NAME = {e.name: e for e in ELEMENTS}


@pytest.fixture(scope="module")
def node():
    return read_graph(MODEL).inputs[0].node


def port(node: Node, element: str) -> Port:
    return Port(node, Output(node, 0, type=TensorType(BY_NAME[element], Shape.unranked())), 0, frozenset({"x"}))


@pytest.mark.parametrize(
    ("element", "values"),
    [
        ("f32", np.array([0.1, 1e-50, np.nan, np.inf])),
        ("f32", np.array([1 << 24, -5])),
        ("f32", np.array([True, False])),
        ("bf16", np.array([0.1, 3e38], np.float32)),
        ("f16", np.array([0.1, 65504.0])),
        ("i64", np.array([1.0, -7.0])),
        ("u8", np.array([0, 255])),
        ("i32", np.array([2**31 - 1], np.uint64)),
        ("boolean", np.array([0, 1, 1])),
        ("f64", np.array([2**53])),
        ("i64", np.array([], np.float32)),
        ("f32", np.array([1.5], ml_dtypes.bfloat16)),
    ],
)
def test_safe(node, element, values):
    assert cast(port(node, element), values) is values


@pytest.mark.parametrize(
    ("element", "values", "said"),
    [
        ("f32", np.array([1e39]), "beyond its range"),
        ("f16", np.array([70000.0]), "beyond its range"),
        ("f32", np.array([(1 << 24) + 1]), "cannot hold exactly"),
        ("f64", np.array([2**53 + 1]), "cannot hold exactly"),
        ("f32", np.array([2**63], np.uint64) + np.uint64(1), "cannot hold exactly"),
        ("i64", np.array([0.5]), "with fractions"),
        ("i64", np.array([np.nan]), "NaN or infinite"),
        ("i64", np.array([1e30]), "outside"),
        ("u8", np.array([-1]), "outside 0..255"),
        ("u8", np.array([256]), "outside 0..255"),
        ("i32", np.array([2**31], np.uint64), "outside"),
        ("boolean", np.array([2]), "outside 0..1"),
        ("f32", np.array(["1.5"]), "is text"),
    ],
)
def test_unsafe_values_are_rejected_with_the_remedy(node, element, values, said):
    with pytest.raises(InputInvalid, match=said) as caught:
        cast(port(node, element), values)
    assert "--cast" in str(caught.value)
    assert cast(port(node, element), values, lossy=True) is values


def test_types_without_a_cast(node):
    with pytest.raises(InputInvalid, match="of dtype complex64") as caught:
        cast(port(node, "f32"), np.array([1j], np.complex64))
    assert "--cast" not in str(caught.value)


def test_integers_are_not_truncated_silently():
    ids = MODEL.parents[1] / "state" / "model.xml"
    assert ids.exists()
    (output,) = predict(MODEL, [np.full((1, 8, 8), 2**24 + 1)])
    assert "cannot hold exactly" in output.error
    (output,) = predict(MODEL, [np.full((1, 8, 8), 2**24 + 1)], cast=True)
    assert output.error is None


# -- tables ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def model(tmp_path):
    return identity(tmp_path / "m.xml", x="?,2")


def run(batch, tmp_path, model, column, *words, code=0, **carried):
    pq.write_table(pa.table({"x": column, **carried}), tmp_path / "t.parquet")
    report = batch(tmp_path / "t.parquet", "-o", tmp_path / "o.parquet", "--force", *words, model=model, code=code)
    rows = pq.read_table(tmp_path / "o.parquet").to_pylist() if not isinstance(report, str) else []
    return report, [row["x_1"] if "x_1" in row else row["x"] for row in rows]


def test_lists_of_doubles_as_pandas_writes_them(batch, tmp_path):
    samples = digits(tmp_path / "npy", 12).reshape(12, 64).astype(np.float64)
    pq.write_table(pa.table({"image": list(samples)}), tmp_path / "t.parquet")
    assert batch(tmp_path / "t.parquet", "-o", tmp_path / "o.parquet")["done"] == 12


@pytest.mark.one_in(8)
@pytest.mark.parametrize(
    ("column", "wanted", "failures"),
    [
        (pa.array([[1, 2], [3, 4]]), [[1, 2], [3, 4]], 0),
        (pa.array([[1.0, None], [3, 4]]), [[3, 4]], 1),
        (pa.array([[1.0, None], [3, 4], None], pa.list_(pa.float32(), 2)), [[3, 4]], 2),
        (pa.array([{"shape": [2], "data": [1.0, 2.0]}, {"shape": [9], "data": [1.0]}]), [[1, 2]], 1),
        (pa.array([{"shape": None, "data": [1.0, 2.0]}, {"shape": [-2], "data": [1.0]}, None]), [], 3),
        (pa.array([{"shape": [2**62, 4], "data": []}, {"shape": [2], "data": [1.0, None]}]), [], 2),
        (pa.array([[[1.0], [2.0, 3.0]], [[1.0]]]), [], 2),
        (pa.array([1, 2], pa.timestamp("ns")), [], 2),
        (pa.array(["a", "b"]), [], 2),
        (pa.array([["1", "2"], ["3", "x"]]), [], 2),
        (pa.array([[0, 1], [1, 1]], pa.list_(pa.decimal128(5, 2))), [[0, 1], [1, 1]], 0),
        (pa.array([[True, False]]), [[1, 0]], 0),
    ],
)
def test_columns_of_every_type(batch, tmp_path, model, column, wanted, failures):
    report, rows = run(batch, tmp_path, model, column, code=FINDINGS if failures else 0)
    assert rows == wanted
    assert report["failed"] == failures


def test_text_is_read_as_numbers_with_cast(batch, tmp_path, model):
    report, rows = run(batch, tmp_path, model, pa.array([["1", "2"], ["3", "x"]]), "--cast", code=FINDINGS)
    assert rows == [[1, 2]]
    assert report["failed"] == 1


@pytest.mark.one_in(2)
@pytest.mark.parametrize("nulls", [False, True])
@pytest.mark.parametrize("order", [None, [1, 0, 2], [2, 0, 1]])
def test_tensors_have_their_logical_axes(batch, tmp_path, nulls, order):
    flat = np.arange(48, dtype=np.float32).reshape(2, 24)
    cells = [*flat, None] if nulls else [*flat]
    storage = pa.array(cells, pa.list_(pa.float32(), 24))
    tensor = pa.fixed_shape_tensor(pa.float32(), [2, 3, 4], permutation=order)
    wanted = flat.reshape(2, 2, 3, 4).transpose(0, *(1 + np.array(order or [0, 1, 2])))
    model = identity(tmp_path / "t.xml", x=",".join(["?", *map(str, wanted.shape[1:])]))
    pq.write_table(pa.table({"x": pa.ExtensionArray.from_storage(tensor, storage)}), tmp_path / "t.parquet")
    batch(tmp_path / "t.parquet", "-o", tmp_path / "out", "--format", "npy", model=model, code=FINDINGS if nulls else 0)
    for k in range(2):
        np.testing.assert_array_equal(np.load(tmp_path / "out" / "t" / f"row_{k}.npy"), wanted[k])


STRANGE = {
    "ns": pa.array([1, 2**62], pa.timestamp("ns")),
    "far": pa.array([2**62, -(2**62)], pa.timestamp("us")),
    "zone": pa.array([1, 2], pa.timestamp("ms", tz="Mars/Phobos")),
    "date": pa.array([10**8, -(10**8)], pa.int32()).cast(pa.date32()),
    "time": pa.array([1, None], pa.time64("ns")),
    "span": pa.array([1, -1], pa.duration("ns")),
    "blob": pa.array([b"\xff", None]),
    "map": pa.array([[("a", 1.0)], None], pa.map_(pa.string(), pa.float64())),
    "decimal": pa.array([1, None]).cast(pa.decimal128(38, 10)),
    "coded": pa.array(["a", None]).dictionary_encode(),
    "tensor": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[1, 2], None], pa.list_(pa.int8(), 2))
    ),
    "nothing": pa.nulls(2),
    "struct": pa.array([{"a": {"b": [1, None]}}, None]),
}


@pytest.mark.one_in(3)
@pytest.mark.parametrize("form", ["parquet", "jsonl", "csv"])
def test_columns_of_any_type_are_carried(batch, tmp_path, model, form):
    pq.write_table(pa.table({"x": pa.array([[1.0, 2.0]] * 2), **STRANGE}), tmp_path / "t.parquet")
    report = batch(tmp_path / "t.parquet", "-o", tmp_path / f"o.{form}", "--workers", 2, model=model)
    assert (report["done"], report["failed"]) == (2, 0)
    if form == "parquet":
        with open_parquet(tmp_path / "o.parquet") as file, open_parquet(tmp_path / "t.parquet") as table:
            assert file.read().select([*STRANGE]).equals(table.read().select([*STRANGE]))


def test_columns_of_one_name(batch, tmp_path, model):
    twice = pa.Table.from_arrays([pa.array([[1.0, 2.0]]), pa.array(["a"]), pa.array(["b"])], ["x", "n", "n"])
    pq.write_table(twice, tmp_path / "t.parquet")
    report = batch(tmp_path / "t.parquet", "-o", tmp_path / "o.parquet", model=model)
    assert "'n' is carried over as 'n_1'" in report["warnings"][0]
    (row,) = pq.read_table(tmp_path / "o.parquet").to_pylist()
    assert (row["n"], row["n_1"]) == ("a", "b")
    pq.write_table(pa.Table.from_arrays([pa.array([[1.0, 2.0]])] * 2, ["x", "x"]), tmp_path / "u.parquet")
    said = batch(tmp_path / "u.parquet", "-o", tmp_path / "p.parquet", model=model, code=USAGE)
    assert "two columns are named 'x'" in said


def test_columns_are_mapped_to_inputs(batch, tmp_path, model):
    pq.write_table(pa.table({"a": [[1.0, 2.0]], "b": [[3.0, 4.0]]}), tmp_path / "t.parquet")
    words = (tmp_path / "t.parquet", "-o", tmp_path / "o.jsonl")
    assert "--column 'x=COLUMN' names another" in batch(*words, model=model, code=USAGE)
    assert "no column 'c' for input 'x'" in batch(*words, "--column", "x=c", model=model, code=USAGE)
    assert "the model has no input 'y'" in batch(*words, "--column", "y=a", model=model, code=USAGE)
    assert "is not of the form" in batch(*words, "--column", "=a", model=model, code=USAGE)
    assert batch(*words, "--column", "x=b", model=model)["done"] == 1
    batch(tmp_path / "t.parquet", "-o", tmp_path / "only.jsonl", "--column", "b", model=model)
    items = json.loads((tmp_path / "only.jsonl").read_text(encoding="utf-8"))["x"]
    assert {item["index"]: item["value"] for item in items} == {0: 3, 1: 4}
    two = identity(tmp_path / "two.xml", x="?,2", y="?,2")
    assert "for example --column x=b" in batch(*words, "--column", "b", "--force", model=two, code=USAGE)
    (prediction,) = predict(model, tmp_path / "t.parquet", columns={"x": "b"})
    assert prediction.outputs["x"].tolist() == [3, 4]
    np.save(tmp_path / "a.npy", np.ones(2, np.float32))
    said = batch(tmp_path / "a.npy", "-o", tmp_path / "q.jsonl", "--column", "x=b", model=model, code=USAGE)
    assert "--column requires .parquet files" in said
