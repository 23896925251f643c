"""Ctrl-C at any time ends the process with exit code 130 and without a traceback.

`irrun.start` handles interrupts before this module is imported.
"""

from __future__ import annotations

import _thread
import atexit
import os
import signal
import sys
import time

AGAIN = 0.01
"""Seconds after which a swallowed interrupt is raised again."""


class Interrupts:
    """Raises KeyboardInterrupt on SIGINT; `noted` records whether an interrupt has arrived.

    A KeyboardInterrupt may get lost: NumPy's import turns it into an ImportError, which callers mistake for a missing
    package, and finalizers and callbacks swallow it.
    """

    def __init__(self) -> None:
        self.noted = False
        self._thread = _thread.get_ident()

    def install(self, early: object = None) -> None:
        """Install the handler in place of Python's or of `early`.

        A no-op if SIGINT is ignored, as for a process that a shell starts in the background.
        """
        if signal.getsignal(signal.SIGINT) not in (signal.default_int_handler, early):
            return
        signal.signal(signal.SIGINT, self._raise)
        sys.unraisablehook = self._swallowed
        # Exit callbacks run in reverse order, so this one, registered first, runs last. An interrupt handled after it
        # would end the interpreter by the signal.
        atexit.register(signal.signal, signal.SIGINT, signal.SIG_IGN)

    def finish(self, code: int) -> None:
        """Make further interrupts end the process at once with this exit code."""
        if signal.getsignal(signal.SIGINT) == self._raise:
            signal.signal(signal.SIGINT, lambda *_: os._exit(code))

    def _raise(self, *_: object) -> None:
        self.noted = True
        raise KeyboardInterrupt

    def _swallowed(self, unraisable: sys.UnraisableHookArgs) -> None:
        """Raise an interrupt again if it was swallowed in a finalizer, which cannot propagate exceptions."""
        if not issubclass(unraisable.exc_type, KeyboardInterrupt):
            sys.__unraisablehook__(unraisable)
            return
        try:
            _thread.start_new_thread(_interrupt_again, (self._thread,))
        except RuntimeError:  # the interpreter is about to exit
            os._exit(130)


def _interrupt_again(thread: int) -> None:
    """Interrupt a thread, by a signal if the system supports it. The signal also ends a blocking system call."""
    time.sleep(AGAIN)
    kill = getattr(signal, "pthread_kill", None)
    if kill is None:
        _thread.interrupt_main()
    else:
        kill(thread, signal.SIGINT)


interrupts = Interrupts()
"""The interrupt handler of this process."""
