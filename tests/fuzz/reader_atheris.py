"""Coverage-guided fuzzing of the reader: `python -m tests.fuzz.reader_atheris [libFuzzer options] [FOLDER…]`.

Needs the extra `fuzz`. Starts from the XML of the project's models; new inputs are saved in FOLDER. Stops at the first
input that ends in anything but a model or an IRError, and writes its bytes to `crash-…`.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any

WEIGHTS = bytes(range(256)) * 64
"""Weights for every input, so that constants within this range can be read."""


def one_input(data: bytes) -> None:
    """Read an input as the XML of a model, strictly and then collecting faults; infer if it can be read."""
    import irload
    from irload.model import infer
    from irload.read import Weights, read_graph, read_xml
    from irload.read.build import build

    faults: list[irload.IRError] = []
    with suppress(irload.IRError):
        build(read_xml(data, faults.append), Weights(WEIGHTS), None, faults.append)
    with suppress(irload.IRError):
        infer(read_graph(data, WEIGHTS))


def corpus(folder: Path) -> None:
    """Write the initial corpus: the XML of the models and of the regressions."""
    from tests.fuzz.bases import models  # imports irload, which must be instrumented first

    for model in models():
        (folder / f"{model.name}.xml").write_bytes(model.xml)
    for file in (Path(__file__).parent / "regressions").glob("*.xml"):
        (folder / file.name).write_bytes(file.read_bytes())


def main(arguments: list[str]) -> None:
    """Fuzz until interrupted. Does not return."""
    atheris: Any = import_module("atheris")  # an extra
    with atheris.instrument_imports(include=["irload.read", "irload.core", "irload.graph", "irload.inference"]):
        import_module("irload.read")
        import_module("irload.inference")
    import_module("tests.harness.children").preload()
    with tempfile.TemporaryDirectory() as folder:
        corpus(Path(folder))
        atheris.Setup([sys.argv[0], *arguments, folder], one_input)
        atheris.Fuzz()


if __name__ == "__main__":
    main(sys.argv[1:])
