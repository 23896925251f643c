"""Tests a job on a hostile data set: run, kill, change the inputs, resume; then no item may be lost or misplaced."""

from __future__ import annotations

import contextlib
import csv
import hashlib
import json
import multiprocessing
import os
import random
import resource
import shutil
import signal
import sqlite3
import stat
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pyarrow.parquet as pq

from irload.batch import pool
from irload.batch.names import shown
from irrun.main import main
from tests.fuzz.datasets.make import DataSet, make

PATIENCE = 120.0
"""Seconds after which a run counts as hanging."""
MEMORY = 8 << 30
"""Bytes of address space of a process."""


class Failure(AssertionError):
    """A job that lost, duplicated or misreported an item."""


def play(folder: Path, seed: int, number: int) -> str:
    """Create and run data set `number` of a seed. Returns how its last run ended. Raises Failure."""
    rng = random.Random(f"{seed}/{number}")
    root = folder / "root"
    dataset = make(root, rng)
    form = rng.choice(("npz", "npy", "parquet", "jsonl", "csv"))
    inside = rng.random() < 0.25
    place = root / "in" if inside and dataset.kind != "table" else root
    output = place / ("out" if form in ("npz", "npy") else f"out.{form}")
    words = ["batch", str(dataset.model), *dataset.words, "-o", str(output), "--json"]
    words += ["--format", form] if form in ("npz", "npy") else []
    words += rng.choice(([], ["--batch-size", "1"], ["--batch-size", "3"]))
    words += rng.choice(([], ["--workers", "2"]))
    words += rng.choice(([], ["--verify-inputs"]))
    words += ["--keep-going"] if rng.random() < 0.7 else []
    before = snapshot(root, output)
    resume: list[str] = []
    for _ in range(rng.choice((0, 1, 1, 2))):
        run(folder, [*words, *resume], rng, kill=rng.random() < 0.7)
        if before != snapshot(root, output):
            raise Failure("inputs or files outside the output were changed")
        resume = ["--resume"]
        if rng.random() < 0.5:
            dataset.change()
            before = snapshot(root, output)
    code, report, errors = run(folder, [*words, *resume], rng, kill=False)
    if before != snapshot(root, output):
        raise Failure("inputs or files outside the output were changed")
    if code == 2 and (" since; give the inputs another output" in errors or "exists already" in errors):
        code, report, errors = run(folder, [*words, "--force"], rng, kill=False)
    if report is None:
        if code not in (2, 3) or "error" not in errors.lower():
            raise Failure(f"exit code {code} without a report: {errors[-500:]}")
        return f"refused {code}"
    check(dataset, output, form, report, code)
    return "stopped" if report["stopped"] else "finished"


def snapshot(root: Path, output: Path) -> dict[str, str]:
    """The contents of each file below `root`, except the output and its manifest."""
    digests: dict[str, str] = {}
    skipped = {str(output), f"{output}.batch"}
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if os.path.join(folder, f) not in skipped]
        for name in (*files, *folders):
            path = os.path.join(folder, name)
            mode = os.lstat(path).st_mode
            if path not in skipped:
                regular = stat.S_ISREG(mode)
                digests[path] = (
                    hashlib.sha256(Path(path).read_bytes()).hexdigest() if regular else str(stat.S_IFMT(mode))
                )
    return digests


def run(folder: Path, words: list[str], rng: random.Random, *, kill: bool) -> tuple[int, dict | None, str]:
    """Run a command in a separate process; with `kill` it is killed (with its workers or alone) or interrupted."""
    moment, victim = rng.random() * 0.5, rng.choice(("all", "parent", "worker", "interrupt"))
    out, err = folder / "stdout", folder / "stderr"
    for path in (out, err):
        path.write_bytes(b"")
    pid = os.fork()
    if not pid:
        _child(words, out, err)
    began = time.monotonic()
    struck = False
    while True:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            break
        passed = time.monotonic() - began
        if kill and not struck and passed >= moment:
            struck = True
            _strike(pid, victim)
        if passed > PATIENCE:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            raise Failure(f"hangs: {words}")
        time.sleep(0.002)
    _end_group(pid)
    code = os.waitstatus_to_exitcode(status)
    errors = err.read_text(errors="replace")
    allowed = {0, 1, 2, 3} | ({-signal.SIGKILL, 130} if struck else set())
    if code not in allowed or "Traceback" in errors or "internal error" in errors:
        raise Failure(f"exit code {code}: {errors[-1500:]}")
    text = out.read_text(errors="replace")
    try:
        report = json.loads(text, parse_constant=_no_json) if text.strip() and code in (0, 1) else None
    except json.JSONDecodeError as error:
        raise Failure(f"no JSON: {error}") from None
    return code, report, errors


def _no_json(text: str) -> None:
    raise Failure(f"{text} is not JSON")


def _child(words: list[str], out: Path, err: Path) -> None:
    code = 130  # interrupted before the job begins
    try:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        for stream, path in ((1, out), (2, err)):
            os.dup2(os.open(path, os.O_WRONLY | os.O_TRUNC), stream)
        # Workers are forked from here, where everything is imported already; tests/batch/kill.py covers spawned
        # workers.
        forking = multiprocessing.get_context("fork")
        pool.multiprocessing = SimpleNamespace(get_context=lambda _: forking)
        sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
        code = main(words)
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(code)


def _strike(pid: int, victim: str) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        if victim == "all":
            os.killpg(pid, signal.SIGKILL)
        elif victim == "parent":
            os.kill(pid, signal.SIGKILL)
        elif victim == "interrupt":
            os.kill(pid, signal.SIGINT)
        else:
            children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
            if children:
                os.kill(int(children[0]), signal.SIGKILL)


def _end_group(pid: int) -> None:
    """End the workers of a killed parent: forked ones hold both ends of their pipes; spawned ones end automatically."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)


def check(dataset: DataSet, output: Path, form: str, report: dict, code: int) -> None:
    """Every item is accounted for: good items are in the output with their values, bad items have failed."""
    if code != (1 if report["failed"] else 0):
        raise Failure(f"exit code {code} with {report['failed']} failures")
    if report["stopped"]:
        return
    if report["before"] + report["done"] + report["failed"] != report["items"] or not report["finished"]:
        raise Failure(f"items are missing: {report}")
    known = dataset.known.items
    with contextlib.closing(sqlite3.connect(report["manifest"])) as db:
        db.text_factory = lambda b: b.decode("utf-8", "surrogateescape")
        query = "SELECT input, status, output, digest, samples FROM items WHERE number IS NOT NULL ORDER BY number"
        rows = db.execute(query).fetchall()
    if len(rows) != report["items"] or {r[0] for r in rows} != {*known}:
        raise Failure(f"items of the manifest and of the data set differ: { ({r[0] for r in rows} ^ {*known}) }")
    done = [r for r in rows if r[1] == "done"]
    for name, status, *_ in rows:
        good = known[name] is not None
        if good != (status == "done") and not _may_fail(name, output, form):
            raise Failure(f"{name!r} is {status}; good: {good}; {report['failures'][:3]}")
    left = sorted(p.name for p in Path(report["manifest"]).parent.iterdir())
    if left != ["manifest.sqlite"] and not report["failed"]:
        raise Failure(f"left behind: {left}")
    if form in ("npz", "npy"):
        for name, _, file, digest, _ in done:
            content = Path(file).read_bytes()
            if hashlib.sha256(content).hexdigest() != digest:
                raise Failure(f"the output of {name!r} is incomplete")
            array = np.load(file)
            _same(name, array if form == "npy" else array[array.files[0]], known[name])
        return
    _common(output, form, done, known)


def _common(output: Path, form: str, done: list[tuple], known: dict[str, np.ndarray | None]) -> None:
    wanted: list[str] = []
    for name, _, _, _, samples in done:
        wanted += [shown(name)] if samples == 1 else [f"{shown(name)}#{k}" for k in range(samples)]
    if form == "parquet":
        values = pq.read_table(output)["input"].to_pylist()
    elif form == "jsonl":
        lines = output.read_bytes().decode("utf-8").split("\n")[:-1]
        values = [json.loads(line, parse_constant=_no_json)["input"] for line in lines]
    else:
        with open(output, newline="", encoding="utf-8") as stream:
            values = [row[0] for row in csv.reader(stream)][1:]
    if values != wanted:
        raise Failure(f"rows are lost, duplicated or misplaced: {len(values)} instead of {len(wanted)}")


def _may_fail(name: str, output: Path, form: str) -> bool:
    """Names with which a good item may fail: names that the job uses, names that are too long, and duplicates."""
    key = os.path.relpath(name, output.parent / "in" if output.parent.name != "in" else output.parent)
    parts = key.split("/")
    long = any(len(os.fsencode(p)) > 240 for p in parts)
    own = parts[0].lower() in (".batch", ".batch.npy", ".batch.png")
    is_archive = any(p.endswith((".npz", ".npy")) for p in parts[:-1])
    return form in ("npz", "npy") and (long or own or is_archive)


def _same(name: str, actual: np.ndarray, wanted: np.ndarray | None) -> None:
    if wanted is None or actual.size != wanted.size or not np.array_equal(actual.reshape(wanted.shape), wanted):
        raise Failure(f"the result of {name!r} is wrong")


def play_aside(seed: int, number: int, scratch: Path) -> str:
    """Like `play`, in a separate folder, which is preserved after a failure."""
    folder = scratch / f"{seed}_{number}"
    folder.mkdir(parents=True)
    result = play(folder, seed, number)
    shutil.rmtree(folder)
    return result
