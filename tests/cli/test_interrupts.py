"""Ctrl-C ends `irrun` at any time with exit code 130 and without a traceback."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.cli.conftest import MODELS

DIGITS = MODELS / "digits"
BEFORE = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)  # which processes in the background are started without
sys.argv = ["irrun", {model!r}, {input!r}]
class Interrupting:
    def __init__(self, name, kind):
        self.name, self.kind = name, kind
    def find_spec(self, name, *_):
        if name == self.name:
            self.name = None
            try:
                signal.raise_signal(signal.SIGINT)
            except KeyboardInterrupt:
                raise self.kind("interrupted") from None
def interrupt_at(name, kind=KeyboardInterrupt):
    sys.meta_path.insert(0, Interrupting(name, kind))
"""
RUN = "\nfrom irrun.start import main\nsys.exit(main())\n"


def ended(text: str) -> tuple[int, str]:
    """The exit code and the messages of `irrun` on a model, in a process that runs `text` first."""
    code = BEFORE.format(model=str(DIGITS / "model.xml"), input=str(DIGITS / "input_0.npy")) + text + RUN
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=1800, check=False)
    said = [line for line in done.stderr.splitlines() if line and not line.startswith("planned in")]
    return done.returncode, "\n".join(said)


@pytest.mark.parametrize(
    "module",
    ["irrun.main", "irrun.failures", "click", "irrun.app", "irrun.run", "numpy", "lxml", "irload.plan.executor"],
)
def test_an_interrupt_during_imports(module):
    assert ended(f"interrupt_at({module!r})") == (130, "irrun: interrupted")


@pytest.mark.parametrize("module", ["numpy", "rich.console"])
def test_an_interrupt_converted_to_another_exception(module):
    """NumPy's import converts it to an ImportError."""
    assert ended(f"interrupt_at({module!r}, ImportError)") == (130, "irrun: interrupted")


def test_an_interrupt_in_a_finalizer():
    """A finalizer swallows exceptions: the interrupt is raised again once the command continues."""
    text = """
import irload.loading, time
class Last:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
def read_model(*_, **__):
    last = Last()
    del last
    time.sleep(1000)
irload.loading.read_model = read_model
import os
os.environ["IRLOAD_MODEL_CACHE"] = "off"
"""
    assert ended(text) == (130, "irrun: interrupted")


def test_two_interrupts():
    """A second interrupt during the report of the first one ends the process."""
    text = """
interrupt_at("irrun.run")
write = sys.stderr.write
def again(text):
    signal.raise_signal(signal.SIGINT)
    return write(text)
sys.stderr.write = again
"""
    assert ended(text) == (130, "")


def test_an_interrupt_at_interpreter_exit():
    text = """
class Last:
    def __del__(self):
        signal.raise_signal(signal.SIGINT)
last = Last()
last.itself = last
"""
    assert ended(text) == (0, "")


def test_an_interrupt_after_the_command():
    text = "import threading; threading._register_atexit(signal.raise_signal, signal.SIGINT)"
    assert ended(text) == (130, "")


def test_the_entry_point_imports_nothing_before_the_handler():
    """Otherwise Ctrl-C during these imports would print a traceback."""
    code = """
import sys
before = set(sys.modules)
import irrun.start
print(sorted(set(sys.modules) - before - {"__future__"}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip() == "['irrun', 'irrun.start']"
