"""The console entry point, which handles Ctrl-C while the modules of the command line are imported.

Importing this module installs a handler of SIGINT. It imports only modules that the interpreter has loaded already.
"""

from __future__ import annotations

# The module signal imports enum, which takes 10 ms, during which Ctrl-C would give a traceback.
import _signal
import os


def _interrupted(*_: object) -> None:
    """End the process: nothing has been opened or started yet."""
    try:
        os.write(2, b"irrun: interrupted\n")
    finally:
        os._exit(130)


if _signal.getsignal(_signal.SIGINT) is _signal.default_int_handler:
    _signal.signal(_signal.SIGINT, _interrupted)


def main() -> int:
    """Run `irrun` with the arguments of the process and return its exit code."""
    from irrun.interrupts import interrupts
    from irrun.main import main

    interrupts.install(early=_interrupted)
    return main()
