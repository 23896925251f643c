"""User-defined operations, loaded from a Python file: for the command line and for batch workers."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path

from irload.errors import ReadError, Where

__all__ = ["load_extension", "loaded_extensions"]

_PREFIX = "irload_extension_"


def load_extension(file: str | Path) -> None:
    """Execute a Python file whose classes register operations (docs/extensions.md). The file is trusted code.

    `file`: its path. Executing it again replaces the first registration. Raises ReadError, with the line, for any error
    in it.
    """
    path = Path(file)
    name = f"{_PREFIX}{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ReadError("an extension is a Python file, which ends in .py", Where(str(path)))
    try:
        path.open("rb").close()
    except OSError as error:
        raise ReadError(f"the extension cannot be read: {error.strerror}", Where(str(path))) from None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses and pickle look up classes by module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise _at_its_line(path, error) from error


def loaded_extensions() -> tuple[str, ...]:
    """The files loaded into this process, which worker processes load as well."""
    files = [getattr(module, "__file__", None) for name, module in [*sys.modules.items()] if name.startswith(_PREFIX)]
    return tuple(str(Path(file).absolute()) for file in files if file)


def _at_its_line(path: Path, error: Exception) -> ReadError:
    """Return the error with the innermost line of the extension in its traceback."""
    line = error.lineno if isinstance(error, SyntaxError) else None
    step = error.__traceback__
    while step is not None:
        if Path(step.tb_frame.f_code.co_filename) == path.absolute():
            line = step.tb_lineno
        step = step.tb_next
    words = error.msg if isinstance(error, SyntaxError) else str(error)
    return ReadError(f"the extension fails: {type(error).__name__}: {words}", Where(str(path), line))
