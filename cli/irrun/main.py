"""The entry point: runs the command line and turns every error into one line and an exit code."""

from __future__ import annotations

import atexit
import errno
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress

import click

from irrun.app import PIPE_CLOSED, app

OK = 0
FINDINGS = 1  # the model does not hold together, or differs from what it declares
USAGE = 2
UNREADABLE = 3
UNSUPPORTED = 4
INTERNAL = 70
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """Run `irrun` with these arguments (default: the process's) and return its exit code. Never raises."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:  # names in a model may hold what the terminal cannot show
            reconfigure(errors="backslashreplace")
    if arguments is None:
        gc.disable()  # a process of its own ends before cycles matter; what runs for long enables it again
        atexit.register(gc.freeze)  # the interpreter looks for cycles once more when it ends, in all that goes anyway
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except OSError as error:
        if not _reader_left(error):
            return _failed(error)
        _drop_output()
        return PIPE_CLOSED
    except (KeyboardInterrupt, click.Abort):
        _say("interrupted")
        return INTERRUPTED
    except click.ClickException as error:
        _show_usage(error)
        return error.exit_code
    except Exception as error:
        return _failed(error)
    return code


def _run(arguments: Sequence[str] | None) -> int:
    _choose_blas_kernels()
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        result = app.main(words, prog_name="irrun", standalone_mode=False)
    except SystemExit as leaving:  # click's own completion and pipe handling leave this way
        return leaving.code if isinstance(leaving.code, int) else OK
    return result if isinstance(result, int) else OK


def _choose_blas_kernels() -> None:
    """Have OpenBLAS use AVX-512 where it would not by itself. It looks once, when NumPy is first imported."""
    if "OPENBLAS_CORETYPE" not in os.environ and "numpy" not in sys.modules:
        from irload.config import blas_hint

        wanted = blas_hint()
        if wanted is not None:
            os.environ["OPENBLAS_CORETYPE"] = wanted


def _failed(error: Exception) -> int:
    """Say what went wrong in one line and give the exit code that stands for it."""
    from irload.errors import (
        DeclaredDiffers,
        InputInvalid,
        IRError,
        LimitExceeded,
        ReadError,
        UnknownOperation,
        Unsupported,
    )

    if isinstance(error, IRError):
        refused = "; --strict refuses such files (DeclaredDiffers)" if isinstance(error, DeclaredDiffers) else ""
        _say(f"{error}{refused}", error=True)
        kinds = {
            InputInvalid: USAGE,
            ReadError: UNREADABLE,
            LimitExceeded: UNREADABLE,
            UnknownOperation: UNSUPPORTED,
            Unsupported: UNSUPPORTED,
        }
        return next((code for kind, code in kinds.items() if isinstance(error, kind)), FINDINGS)
    if isinstance(error, FileExistsError):
        _say(f"{error}; --force replaces it", error=True)
        return USAGE
    if isinstance(error, OSError):
        _say(f"{error.filename}: {error.strerror}" if error.filename else str(error), error=True)
        return UNREADABLE
    if isinstance(error, MemoryError):
        _say("out of memory", error=True)
        return UNREADABLE
    if os.environ.get("IRRUN_TRACEBACK"):
        raise error
    _say(
        f"internal error: {type(error).__name__}: {error}. This is a bug in irload; please report it "
        "(IRRUN_TRACEBACK=1 shows where it happened)",
        error=True,
    )
    return INTERNAL


def _show_usage(error: click.ClickException) -> None:
    """A wrong command line: how the command is called, then the fault as any other."""
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
    """True where the reader of our output closed the pipe, which Windows reports as an invalid argument."""
    windows = sys.platform == "win32" and error.errno == errno.EINVAL and error.filename is None
    return windows or isinstance(error, BrokenPipeError)


def _drop_output() -> None:
    """Whoever read our output left. Point stdout at nothing, so that the interpreter's own last flush is quiet."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
