"""SIGINT mid-batch: exit status 130, finished items kept, and a job that resumes."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

from irrun.main import INTERRUPTED
from tests.batch.kill import MODEL, digits
from tests.harness.tiers import tiered

ITEMS = tiered(2500, 6000)
HANGING = 1800
"""Seconds after which a job counts as hanging: far more than the slowest machine needs."""


def done(folder: Path) -> set[str]:
    """The outputs that a job has recorded; it must have ended, because it locks its records."""
    with closing(sqlite3.connect(folder / ".batch" / "manifest.sqlite")) as manifest:
        return {row[0] for row in manifest.execute("SELECT output FROM items WHERE status = 'done'")}


def listening() -> None:
    """Receive SIGINT even if the tests do not: shells make background processes ignore it."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def interrupted(command: list[str], out: Path) -> tuple[int, str]:
    """The exit code and the messages of a job that gets SIGINT once it has some results."""
    job = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True, preexec_fn=listening)
    deadline = time.monotonic() + HANGING
    while (not out.exists() or len(os.listdir(out)) < ITEMS // 12) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(job.pid, signal.SIGINT)
    _, errors = job.communicate(timeout=HANGING)
    return job.returncode, errors


def test_sigint_mid_batch_exits_130_keeps_finished_items_and_resumes(tmp_path):
    digits(tmp_path / "in", ITEMS)
    code = 0
    for k in range(5):  # if this process waits too long for the processor, a job ends before the signal
        out = tmp_path / f"out{k}"
        command = [sys.executable, "-m", "irrun", "batch", str(MODEL), str(tmp_path / "in"), "-o", str(out)]
        command += ["--batch-size", "1", "--workers", "1"]  # slow, so that the signal arrives during the job
        code, errors = interrupted(command, out)
        if code:
            break
    assert code == INTERRUPTED
    assert "Traceback" not in errors
    assert "--resume continues" in errors
    kept = done(out)
    assert 0 < len(kept) < ITEMS
    before = {file: os.stat(file).st_mtime_ns for file in kept}
    again = subprocess.run([*command[:-4], "--resume"], capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    assert len(done(out)) == ITEMS
    assert before == {file: os.stat(file).st_mtime_ns for file in kept}, "finished items are not computed again"
