"""The same jobs by local processes and by a local Ray cluster."""

from __future__ import annotations

import json
import os
import secrets
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.batch.kill import HANGING, MODEL, digits

ROOT = Path(__file__).parents[2]


class Cluster(NamedTuple):
    """A running cluster: its process, the words of a job that uses it, and the key that the job needs."""

    pid: int
    words: tuple[str, ...]
    key: dict[str, str]


@pytest.fixture(scope="module")
def cluster():
    """A cluster for several tests: starting one takes longer than most jobs."""
    key = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}  # only of this cluster
    script = (
        "import ray; c = ray.init(include_dashboard=False); print(c.address_info['gcs_address'], flush=True); input()"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **key},
    )
    try:
        address = next(line.strip() for line in process.stdout if line.strip().rpartition(":")[2].isdigit())
        yield Cluster(process.pid, ("--engine", "ray", "--address", address), key)
    finally:
        process.communicate("\n", timeout=HANGING)


def begin(*words, **variables):
    return subprocess.Popen(
        [sys.executable, "-m", "irrun", "batch", *map(str, words), "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **variables},
    )


def finish(job, code=0):
    report, errors = job.communicate(timeout=HANGING)
    assert job.returncode == code, errors
    return json.loads(report)


def table(path, samples, group, bad=()):
    cells = [None if k in bad else s.ravel() for k, s in enumerate(samples)]
    column = pa.array(cells, pa.list_(pa.float32(), samples[0].size))
    pq.write_table(pa.table({"id": range(len(samples)), "image": column}), path, row_group_size=group)


def assert_same_rows(a, b):
    """The same rows in the same order.

    Results of one sample may differ by a rounding: BLAS may sum a row of a product in another order if the batch has
    another size, and Ray forms other batches.
    """
    a, b = pq.read_table(a), pq.read_table(b)
    assert a.schema == b.schema
    assert a.num_rows == b.num_rows
    for name in a.column_names:
        if not pa.types.is_fixed_size_list(a.schema.field(name).type):
            assert a.column(name) == b.column(name), name
            continue
        assert a.column(name).is_null() == b.column(name).is_null()
        x, y = (t.column(name).combine_chunks().flatten().to_numpy() for t in (a, b))
        np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-7, err_msg=name)


@pytest.mark.nightly
def test_rows_of_tables(cluster, tmp_path):
    samples = digits(tmp_path / "npy", 900)
    (tmp_path / "in").mkdir()
    size = ("--batch-size", 64)
    for k in range(3):
        table(tmp_path / "in" / f"{k}.parquet", samples[300 * k : 300 * k + 300], 70, bad=(5, 299))
    here = finish(begin(MODEL, tmp_path / "in", "-o", tmp_path / "here.parquet", "--workers", 2, *size), 1)
    job = begin(
        MODEL, tmp_path / "in", "-o", tmp_path / "ray.parquet", "--workers", 2, *size, *cluster.words, **cluster.key
    )
    there = finish(job, 1)
    assert (there["done"], there["failed"]) == (here["done"], here["failed"]) == (894, 6)
    assert there["failures"] == here["failures"]
    assert_same_rows(tmp_path / "ray.parquet", tmp_path / "here.parquet")


@pytest.mark.nightly
def test_files(cluster, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    samples = digits(tmp_path / "in", 60)
    (tmp_path / "in" / "000007.npy").write_text("no array")
    np.save(tmp_path / "in" / "stack.npy", samples[:5])
    here = finish(begin(MODEL, "in", "-o", "here.parquet", "--batch-size", 16), 1)
    there = finish(begin(MODEL, "in", "-o", "ray.parquet", "--batch-size", 16, *cluster.words, **cluster.key), 1)
    assert (there["done"], there["samples"]) == (here["done"], here["samples"]) == (60, 64)
    assert there["failures"] == here["failures"]
    assert_same_rows(tmp_path / "ray.parquet", tmp_path / "here.parquet")


def actors_of(driver):
    """The processes of Ray's map workers below a driver."""
    parents: dict[int, int] = {}
    titles: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
            titles[int(entry.name)] = (entry / "cmdline").read_text()
        except OSError:
            continue

    def below(pid):
        while pid in parents and pid != driver:
            pid = parents[pid]
        return pid == driver

    return [pid for pid, title in titles.items() if "MapWorker" in title and below(pid)]


def test_a_killed_actor_loses_no_row(cluster, tmp_path):
    samples = np.concatenate([digits(tmp_path / "npy", 100)] * 20)
    table(tmp_path / "in.parquet", samples, 100, bad=(5, 1299))
    words = (MODEL, tmp_path / "in.parquet", "--batch-size", 2, "--workers", 2)
    job = begin(*words, "-o", tmp_path / "ray.parquet", *cluster.words, **cluster.key)
    deadline = time.monotonic() + HANGING
    while not list((tmp_path / "ray.parquet.batch" / "parts").rglob("*.parquet")):
        assert time.monotonic() < deadline
        assert job.poll() is None, job.communicate()
        time.sleep(0.05)
    actors = actors_of(cluster.pid)
    assert len(actors) == 2
    os.kill(actors[0], signal.SIGKILL)
    there = finish(job, 1)
    here = finish(begin(*words, "-o", tmp_path / "here.parquet"), 1)
    assert (there["done"], there["failed"]) == (here["done"], here["failed"]) == (1998, 2)
    assert there["failures"] == here["failures"]
    assert_same_rows(tmp_path / "ray.parquet", tmp_path / "here.parquet")


def test_items_that_all_fail_start_no_cluster(tmp_path):
    samples = digits(tmp_path / "npy", 20)
    table(tmp_path / "in.parquet", samples[:, :, :4], 10)
    words = (MODEL, tmp_path / "in.parquet", "-o", tmp_path / "o.parquet", "--engine", "ray")
    job = begin(*words)
    _, errors = job.communicate(timeout=HANGING)
    assert job.returncode == 2
    assert "the first 8 items all fail" in errors


@pytest.mark.nightly
@pytest.mark.parametrize("script", ["embed_on_ray.py"])
def test_examples(script, tmp_path):
    ran = subprocess.run(
        [sys.executable, ROOT / "examples" / script, tmp_path / "out"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert pq.read_table(tmp_path / "out").num_rows == 20
