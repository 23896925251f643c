"""A child forked while another thread reads or plans can read and plan, too."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from irload.system import forks
from irload.system.forks import Unforked
from tests.harness.tiers import tiered

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks")
MODELS = Path(__file__).parents[2] / "models"
CODE = """
import os, signal, sys, threading, time, warnings
import numpy as np
import irload
warnings.simplefilter("ignore")
importing = threading.Event()
class Slow:
    def find_spec(self, name, *_):
        if name == {module!r} and not importing.is_set():
            importing.set()
            time.sleep(1)
sys.meta_path.insert(0, Slow())
x = np.load({input!r})
def infer():
    compiled = irload.compile_model({model!r}, 2, jit=False, cache=False)
    for size in {sizes!r}:
        compiled(np.resize(x, (size, *x.shape[1:])))
thread = threading.Thread(target=infer)
thread.start()
assert importing.wait(900)
child = os.fork()
if not child:
    signal.alarm(900)
    infer()
    os._exit(0)
thread.join()
assert os.waitpid(child, 0)[1] == 0
"""


@pytest.mark.one_in(3)
@pytest.mark.parametrize(
    "module",
    tiered(
        ["irload.compiling", "irload.plan.executor", "irload.plan.traced.template"],
        [
            *("irload.compiling", "irload.read.xml", "irload.plan.executor"),
            *("irload.plan.traced.pattern", "irload.plan.traced.template", "irload.plan.traced.workspace"),
        ],
    ),
)
def test_while_another_thread_imports(module):
    folder, sizes = (MODELS / "dynamic", (1, 2, 3)) if ".traced." in module else (MODELS / "digits", (1,))
    code = CODE.format(module=module, model=str(folder / "model.xml"), input=str(folder / "input_0.npy"), sizes=sizes)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=1800)


def fork(gate: Unforked) -> None:
    """Call the hooks of a fork in the parent."""
    gate.before_fork()
    gate.after_fork_in_parent()


def test_a_fork_waits_only_for_other_threads(monkeypatch):
    monkeypatch.setattr(forks, "PATIENCE", 900)
    gate, entered, left = Unforked(), threading.Event(), []

    def work() -> None:
        with gate:
            with gate:
                entered.set()
                time.sleep(0.2)
            left.append(True)

    thread = threading.Thread(target=work)
    thread.start()
    entered.wait()
    with gate:
        fork(gate)
        assert left
        thread.join()
        fork(gate)  # does not wait for the forking thread, which is inside


def test_no_thread_enters_during_a_fork():
    gate = Unforked()
    gate.before_fork()
    entered = threading.Event()

    def work() -> None:
        with gate:
            entered.set()

    thread = threading.Thread(target=work)
    thread.start()
    assert not entered.wait(0.1)
    gate.after_fork_in_parent()
    assert entered.wait(900)
    thread.join()


def test_hooks_that_are_registered_during_a_fork():
    gate = Unforked()
    gate.after_fork_in_parent()  # the fork of another thread began before the registration
    entered = threading.Event()

    def work() -> None:
        with gate:
            entered.set()

    threading.Thread(target=work, daemon=True).start()
    assert entered.wait(900)
    fork(gate)


def inside(gate: Unforked, left: threading.Event) -> threading.Thread:
    """A thread that has passed the gate and waits for the event."""
    entered = threading.Event()

    def work() -> None:
        with gate:
            entered.set()
            left.wait()

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(900)
    return thread


def test_a_fork_waits_for_a_limited_time(monkeypatch):
    """The forking thread may hold a lock for which the other one waits."""
    monkeypatch.setattr(forks, "PATIENCE", 0.2)
    gate, left = Unforked(), threading.Event()
    thread = inside(gate, left)
    start = time.monotonic()
    fork(gate)
    assert time.monotonic() - start > 0.1
    left.set()
    thread.join()
    with gate:
        pass


def test_a_child_has_no_thread_inside(monkeypatch):
    monkeypatch.setattr(forks, "PATIENCE", 900)
    gate, left = Unforked(), threading.Event()
    thread = inside(gate, left)
    gate.after_fork_in_child()
    fork(gate)  # waits for no thread
    left.set()
    gate._inside.append(thread.ident or 0)  # left by the thread of this process
    thread.join()
    assert not gate._inside
