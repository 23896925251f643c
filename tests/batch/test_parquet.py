"""Fixed-size lists with nulls survive a round trip through parquet, with every supported version of pyarrow."""

from __future__ import annotations

import io

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from irload.batch import parquet
from irload.batch.parquet import open_parquet, parquet_writer

PAIR = pa.list_(pa.float32(), 2)
COLUMNS = {
    "numbers": pa.array([[1.0, None], [3, 4], None, [5, 6]], PAIR),
    "text": pa.array([["a", None], None, ["b", "c"], None], pa.list_(pa.string(), 2)),
    "lists": pa.array([[[1.0, 2.0], None], None, [], [[3, 4]]], pa.list_(PAIR)),
    "large lists": pa.array([[[1.0, 2.0], None], None, [], [[3, 4]]], pa.large_list(PAIR)),
    "of lists": pa.array([[[1.0, 2.0], None], None, None, [[3, 4], [1, 2]]], pa.list_(PAIR, 2)),
    "struct": pa.array(
        [{"a": [1, 2], "b": "x"}, {"a": None}, {"a": [3, 4]}, {}], pa.struct({"a": PAIR, "b": pa.string()})
    ),
    "tensor": pa.ExtensionArray.from_storage(
        pa.fixed_shape_tensor(pa.int8(), [2]), pa.array([[1, 2], None, None, [3, 4]], pa.list_(pa.int8(), 2))
    ),
}
OTHERS = {
    "time": pa.array([1, 2, None, 3], pa.timestamp("ms", tz="Mars/Phobos")),
    "span": pa.array([1, 2, None, 3], pa.duration("ns")),
    "coded": pa.array(["a", None, "b", "a"]).dictionary_encode(),
    "map": pa.array([[("a", 1.0)], None, [], []], pa.map_(pa.string(), pa.float64())),
}


@pytest.fixture(params=[18, 25, None], ids=["an old pyarrow", "pyarrow 25", "this pyarrow"])
def version(request, monkeypatch):
    """The version of pyarrow, at most the installed one, that irload detects when it writes and reads files."""
    if request.param is not None:
        known = parquet._version()
        monkeypatch.setattr(parquet, "_version", lambda: min(known, request.param))
    return parquet._version()


def written(*tables: pa.Table) -> io.BytesIO:
    stream = io.BytesIO()
    with parquet_writer(stream, tables[0].schema) as write:
        for table in tables:
            write(table)
    return stream


@pytest.mark.parametrize("name", COLUMNS)
@pytest.mark.parametrize("rows", [slice(0, 4), slice(1, 4), slice(1, 3), slice(0, 0)], ids=str)
def test_a_written_table_is_read_back(version, name, rows):
    table = pa.table({"x": COLUMNS[name], **OTHERS}).slice(rows.start, rows.stop - rows.start)
    with open_parquet(written(table)) as file:
        assert (file.schema, file.rows) == (table.schema, len(table))
        read = file.read()
        read.validate(full=True)
        assert read.equals(table)
        assert pa.Table.from_batches(file.batches(2), table.schema).equals(table)


def test_row_groups(version):
    table = pa.table({"x": COLUMNS["numbers"]})
    with open_parquet(written(table.slice(0, 3), table.slice(3), table)) as file:
        assert file.rows == 8
        assert [file.read_row_group(k).equals(t) for k, t in enumerate((table.slice(0, 3), table.slice(3), table))]


@pytest.mark.skipif(parquet._version() < parquet.READS, reason="this pyarrow cannot read these nulls")
@pytest.mark.parametrize("name", COLUMNS)
def test_files_for_an_old_pyarrow_are_equal_in_a_new_one(monkeypatch, name):
    table = pa.table({"x": COLUMNS[name], **OTHERS})
    monkeypatch.setattr(parquet, "_version", lambda: 18)
    read = pq.read_table(written(table))
    assert read.schema == table.schema
    assert read.equals(table)


def test_files_with_other_names_in_their_lists(version, tmp_path):
    """Other writers name the elements of lists differently; without nulls no repair is needed."""
    table = pa.table({"x": COLUMNS["numbers"].slice(0, 2)})
    pq.write_table(table, tmp_path / "t.parquet", use_compliant_nested_type=False)
    with open_parquet(tmp_path / "t.parquet") as file:
        assert file.read().to_pylist() == table.to_pylist()
