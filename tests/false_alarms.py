"""No false alarms: `python -m tests.false_alarms [N] [SEED] [ROW…]`.

Random models of one operation, from the generators of the conformance tests, static and with partial shapes, are
written by OpenVINO (alternately by save_model, which compresses to f16, and by serialize), checked, read and run. There
must be no errors or warnings, and no port may differ from inference.
"""

from __future__ import annotations

import sys
import tempfile
from collections import Counter
from contextlib import suppress
from pathlib import Path

import numpy as np
import openvino as ov

from irload import IRError, compile_model
from irload.checks import check
from tests.harness import runtime
from tests.harness.case import GENERATORS, Case
from tests.harness.verify import relax
from tests.ops.families import load_families


def written(case: Case, k: int, folder: Path, rng: np.random.Generator) -> Path | None:
    """The case as a file written by OpenVINO, or None if OpenVINO rejects the model."""
    shapes = relax(case, rng) if k % 3 == 2 else None
    try:
        model = runtime.read(case, shapes)
        file = folder / "model.xml"
        if k % 2:
            ov.serialize(model, file)
        else:
            ov.save_model(model, file)
    except (runtime.Rejected, RuntimeError):
        return None
    return file


def said_of(case: Case, file: Path) -> list[tuple[str, str]]:
    """The findings for a file, each with its code: errors and warnings of `check`, ports that differ."""
    said = [(f.code, f"{f.layer}: {f.message} ({f.cause})") for f in check(file).findings if f.severity != "note"]
    compiled = compile_model(file)
    with suppress(IRError):  # some cases are expected to fail
        compiled([source.value for source in case.inputs if not source.constant])
    return said + [("DeclaredDiffers", str(d)) for d in compiled.differences]


def run(count: int, seed: int, wanted: tuple[str, ...] = ()) -> tuple[int, list[tuple[Case, tuple[str, str]]]]:
    """The number of files checked, and their false alarms."""
    load_families()
    rows = [r for r in sorted(GENERATORS) if not wanted or any(w in "-".join(r) for w in wanted)]
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(rows))
    checked, alarms = 0, list[tuple[Case, tuple[str, str]]]()
    for k in range(2 * count):  # OpenVINO cannot write some cases
        if checked == count:
            break
        generators = GENERATORS[rows[order[k % len(rows)]]]
        case = generators[int(rng.integers(len(generators)))](rng)
        with tempfile.TemporaryDirectory() as folder:
            file = None if case.oracle == "none" else written(case, k, Path(folder), rng)
            if file is not None:
                checked += 1
                alarms += [(case, said) for said in said_of(case, file)]
    return checked, alarms


def main(arguments: list[str]) -> int:
    """Run and print the alarms. Returns 1 if there are any."""
    numbers = [int(a) for a in arguments if a.isdigit()]
    count, seed = (numbers + [300, 1][len(numbers) :])[:2]
    checked, alarms = run(count, seed, tuple(a for a in arguments if not a.isdigit()))
    for case, (code, text) in alarms:
        print(f"{case}\n    {code} {text}")
    codes = ", ".join(f"{code} {n} times" for code, n in Counter(code for _, (code, _) in alarms).items())
    print(f"{checked} files written by OpenVINO, {len(alarms)} false alarms{f': {codes}' if codes else ''}")
    return 1 if alarms else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
