"""Failed allocations: a separate exit code, the purpose of the allocation, and a remedy."""

from __future__ import annotations

import errno
import pickle
import subprocess
import sys

import numpy as np
import pytest

import irload
from irload.batch.items import Done, ItemRecord
from irload.batch.job import Summary
from irload.batch.predictor import Predictor
from irload.batch.samples import Samples
from irload.batch.worker import _sendable
from irload.read.weights import Weights
from irrun.main import FINDINGS, OUT_OF_MEMORY
from tests.cli.conftest import MODELS

DIGITS = MODELS / "digits" / "model.xml"
SEVEN = MODELS / "digits" / "digit_7_0.npy"
REMEDY = "; use smaller inputs or batches, or fewer threads"
LIMITS = ("--limit", "peak-bytes=1T", "--limit", "tensor-bytes=1T")


LIMITED = """
import resource, runpy
resource.setrlimit(resource.RLIMIT_AS, (1800 << 20, 1800 << 20))
runpy.run_module("irrun", run_name="__main__")
"""


@pytest.mark.one_in(2)
@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit of the address space")
@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("run", DIGITS), "for the plan"),
        (("bench", DIGITS, "--runs", "1"), "for the plan"),
        (("compare", "plain", DIGITS), "for the outputs"),
        (("batch", DIGITS, "-o", "out"), "for the item"),
    ],
)
def test_a_system_without_memory(tmp_path, words, what):
    count = 8_000_000 if "batch" in words else 400_000  # batches split files
    np.lib.format.open_memmap(tmp_path / "x.npy", "w+", np.float32, (count, 1, 8, 8))
    done = subprocess.run(
        [sys.executable, "-c", LIMITED, *words, "x.npy", *LIMITS],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        check=False,
    )
    assert done.returncode == OUT_OF_MEMORY, done.stderr
    assert f"out of memory {what}" in done.stderr
    assert f"{REMEDY}\n" in done.stderr


@pytest.mark.parametrize("error", [MemoryError(), OSError(errno.ENOMEM, "Cannot allocate memory")])
@pytest.mark.parametrize("command", ["run", "inspect", "check", "infer", "save"])
def test_every_command(irrun, monkeypatch, tmp_path, command, error):
    def fails(*_: object, **__: object) -> None:
        raise error

    readers = (("irload", "read_model"), ("irload.loading", "read_model"))
    for module, name in (*readers, ("irrun.survey", "survey"), ("irload.checks", "check")):
        monkeypatch.setattr(f"{module}.{name}", fails)
    done = irrun(command, DIGITS, *([tmp_path / "new.xml"] if command == "save" else []))
    assert done.code == OUT_OF_MEMORY
    assert done.err.startswith("irrun: error: out of memory")
    assert REMEDY in done.err


def test_weights_that_do_not_fit(monkeypatch):
    def fails(*_: object) -> None:
        raise MemoryError("no 8 GB")

    weights = Weights(DIGITS.with_suffix(".bin"))
    monkeypatch.setattr(np, "empty", fails)
    with pytest.raises(irload.OutOfMemory, match=r"out of memory for 64 bytes of .*model\.bin: no 8 GB; use smaller"):
        weights.raw(0, 64)


def test_a_batch_that_finds_no_memory(monkeypatch):
    summary = Summary()
    summary.count(
        Done(
            [
                ItemRecord("a", reason="out of memory for the item"),
                ItemRecord("b", reason="is damaged"),
                ItemRecord("c"),
            ]
        )
    )
    assert (summary.failed, summary.out_of_memory, summary.done) == (2, 1, 1)

    def fails(*_: object, **__: object) -> None:
        raise MemoryError("no 3 TiB")

    monkeypatch.setattr(Predictor, "_together", fails)
    (fault,) = Predictor(DIGITS).run([Samples((np.load(SEVEN),))])
    assert isinstance(fault, irload.OutOfMemory)
    assert str(fault) == f"out of memory for the batch: no 3 TiB{REMEDY}"
    sent = pickle.loads(pickle.dumps(_sendable(MemoryError("no 3 TiB"))))
    assert isinstance(sent, irload.OutOfMemory)
    assert str(sent) == f"out of memory in a worker: no 3 TiB{REMEDY}"


@pytest.mark.parametrize(("reason", "code"), [("out of memory for the batch", OUT_OF_MEMORY), ("is damaged", FINDINGS)])
def test_the_code_of_a_batch(irrun, monkeypatch, tmp_path, reason, code):
    def failed(job, *_: object) -> Summary:
        summary = Summary(total=2, finished=True)
        summary.count(Done([ItemRecord("a", reason=reason), ItemRecord("b")]))
        return summary

    monkeypatch.setattr("irload.batch.run_job.run_job", failed)
    assert irrun("batch", DIGITS, SEVEN, "-o", tmp_path / "out").code == code
