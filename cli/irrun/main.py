"""The entry point: runs the command line and turns every error into one line and an exit code."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
import warnings
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from irrun.failures import (
    FINDINGS,
    INTERNAL,
    INTERRUPTED,
    OK,
    OUT_OF_MEMORY,
    UNREADABLE,
    UNSUPPORTED,
    USAGE,
    message_and_code,
)
from irrun.interrupts import interrupts

if TYPE_CHECKING:
    from collections.abc import Sequence

    import click

__all__ = [
    "FINDINGS",
    "INTERNAL",
    "INTERRUPTED",
    "OK",
    "OUT_OF_MEMORY",
    "UNREADABLE",
    "UNSUPPORTED",
    "USAGE",
    "main",
]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `irrun` with these arguments (default: the process's) and return its exit code. Never raises."""
    if arguments is not None:
        return _interruptible(arguments)
    _open_closed_streams()
    _shorten_warnings()
    interrupts.install()
    code = _interruptible(arguments)
    interrupts.finish(INTERRUPTED)
    return code


def _open_closed_streams() -> None:
    """Open /dev/null as each standard stream that the caller has closed, so that no other file gets its descriptor."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - open until the process ends


def _shorten_warnings() -> None:
    """Print warnings of irload as `irrun: warning: …`, without the source line that Python adds."""
    show_others = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if not issubclass(category, UserWarning):
            show_others(message, category, *place, **more)
            return
        from irrun.render import safe, stderr

        with suppress(OSError):
            stderr().print(f"irrun: [bold yellow]warning:[/] {safe(message)}", soft_wrap=True)

    warnings.showwarning = show


def _interruptible(arguments: Sequence[str] | None) -> int:
    """Return the exit code of the command line; after Ctrl-C 130, even if the interrupt was swallowed."""
    try:
        code = _guarded(arguments)
        if not interrupts.noted:
            return code
    except KeyboardInterrupt:
        pass
    interrupts.finish(INTERRUPTED)  # a second Ctrl-C may arrive during the message
    with suppress(OSError, ValueError):
        sys.stderr.write("irrun: interrupted\n")
        sys.stderr.flush()
    return INTERRUPTED


def _guarded(arguments: Sequence[str] | None) -> int:
    """Return the exit code of the command line; every error becomes one line. Raises only KeyboardInterrupt."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # names in a model may contain characters that the terminal cannot encode
            reconfigure(errors="backslashreplace")
    if arguments is None:
        gc.disable()  # a short process ends before cycles matter; long-running commands enable it again
        atexit.register(gc.freeze)  # the interpreter collects cycles again at exit, when all memory is released anyway
    import click  # imported here, so that Ctrl-C during the import is handled

    try:
        code = _run(arguments)
        sys.stdout.flush()
    except click.Abort as error:
        if isinstance(error.__cause__, EOFError):  # click aborts on EOFError too, for example of a damaged .pyc file
            return _failed(error.__cause__)
        raise KeyboardInterrupt from None
    except click.ClickException as error:
        _show_usage(error)
        return error.exit_code
    except Exception as error:
        if interrupts.noted:
            raise KeyboardInterrupt from error
        if isinstance(error, OSError) and _reader_left(error):
            _drop_output()
            return _pipe_closed()
        return _failed(error)
    return code


def _pipe_closed() -> int:
    from irrun.app import PIPE_CLOSED

    return PIPE_CLOSED


def _run(arguments: Sequence[str] | None) -> int:
    from irrun.app import app

    _choose_blas_kernels()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = app.main(words, prog_name="irrun", standalone_mode=False)
    except SystemExit as leaving:  # click's completion and pipe handling exit this way
        return leaving.code if isinstance(leaving.code, int) else OK
    return result if isinstance(result, int) else OK


def _choose_blas_kernels() -> None:
    """Make OpenBLAS use AVX-512 on processors where its default is AVX2. NumPy's first import reads the variable."""
    if "OPENBLAS_CORETYPE" not in os.environ and "numpy" not in sys.modules:
        from irload.diagnostics.config import blas_hint

        wanted = blas_hint()
        if wanted is not None:
            os.environ["OPENBLAS_CORETYPE"] = wanted


def _failed(error: Exception) -> int:
    """Print the error in one line and return its exit code."""
    known = message_and_code(error)
    if known is not None:
        message, code = known
        _say(message, error=True)
        return code
    if os.environ.get("IRRUN_TRACEBACK"):
        raise error
    _say(
        f"internal error: {type(error).__name__}: {error}. This is a bug in irload; please report it "
        "(IRRUN_TRACEBACK=1 shows where it happened)",
        error=True,
    )
    return INTERNAL


def _show_usage(error: click.ClickException) -> None:
    """Report a wrong command line: the usage, then the error."""
    import click

    from irrun.render import plain

    context = getattr(error, "ctx", None)
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        click.echo(error.format_message(), err=True)
        return
    if context is not None:
        click.echo(f"{context.get_usage()}\nTry '{plain(context.command_path)} --help' for help.\n", err=True)
    _say(error.format_message(), error=True)


def _say(message: str, *, error: bool = False) -> None:
    from irrun.render import plain, stderr

    with suppress(OSError):
        stderr().print("irrun: " + ("[bold red]error:[/] " if error else ""), end="")
        stderr().print(plain(message), markup=False, highlight=False, soft_wrap=True)


def _reader_left(error: OSError) -> bool:
    """Return True if the reader of the output closed the pipe, which Windows reports as an invalid argument."""
    windows = sys.platform == "win32" and error.errno == errno.EINVAL and error.filename is None
    return windows or isinstance(error, BrokenPipeError)


def _drop_output() -> None:
    """Redirect stdout to the null device, which avoids an error when the interpreter flushes it at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
