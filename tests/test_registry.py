"""The registry against the list of all public operations, and how type and version select one."""

from __future__ import annotations

import subprocess
import sys

import pytest

from irload.deviations.registry import deviations
from irload.errors import UnknownOperation
from irload.ops.registry import LATEST, registered, resolve
from tests import opset_tables
from tests.harness.case import GENERATORS
from tests.harness.tiers import NIGHTLY
from tests.ops.families import load_families
from tests.opset_tables import rows

Row = tuple[str, str]

ROWS: tuple[Row, ...] = tuple(rows())

OTHER_NAMESPACES = {("Pad", "ngraph"), ("Convolution", "onednn")}

TESTED_ELSEWHERE = {
    ("Parameter", "opset1"): "occurs in every case",
    ("Const", "opset1"): "occurs in every case with constants; every element type in tests/read",
    ("Result", "opset1"): "occurs in every case",
    ("ReadValue", "opset3"): "needs several inferences: tests/ops/infrastructure/test_state.py",
    ("ReadValue", "opset6"): "likewise",
    ("Assign", "opset3"): "likewise",
    ("Assign", "opset6"): "likewise",
    ("Pad", "ngraph"): "no runtime reads it: tests/ops/movement/test_pad.py",
}
"""Rows without a generator of random cases, and their tests."""

load_families()


def test_the_list_is_whole() -> None:
    assert len(ROWS) == len(set(ROWS)) == 278
    assert len({type for type, _ in ROWS}) == 240


def test_registry_and_list_agree() -> None:
    assert {(c.type, c.opset) for c in registered()} == set(ROWS) | OTHER_NAMESPACES


def test_every_row_has_random_cases() -> None:
    without = (set(ROWS) | OTHER_NAMESPACES) - set(GENERATORS)
    assert without == set(TESTED_ELSEWHERE)


def test_every_row_infers_and_computes() -> None:
    for cls in registered():
        assert callable(getattr(cls, "infer", None)), cls
        assert callable(getattr(cls, "compute", None)) or cls.type in ("Parameter", "Const", "Result"), cls


def test_deviations_name_operations() -> None:
    types = {type for type, _ in ROWS}
    assert [row for entry in deviations() for row in entry.operations if row not in types] == []


# -- which class a version selects ------------------------------------------------------------------------------------


NUMBERED = tuple(row for row in ROWS if row[1].startswith("opset"))


@pytest.mark.parametrize("row", NUMBERED, ids="-".join)
def test_a_version_selects_the_newest_variant_up_to_it(row: Row) -> None:
    """Each row is selected by its version, and by later ones until the next variant appears."""
    type, version = row
    since = sorted(int(v[5:]) for t, v in NUMBERED if t == type)
    number = int(version[5:])
    later = next((s for s in since if s > number), LATEST + 1)
    for n in range(number, later):
        if (type, n) not in GONE:
            assert resolve(type, f"opset{n}")[0].opset == version


GONE = {("RNNCell", 2), ("ShuffleChannels", 2)} | {(type, n) for type in ("Reverse", "Xor") for n in range(2, 18)}
"""Pairs (type, opset) without the operation, although an earlier opset has it."""


def test_every_opset_has_the_operations_of_the_runtime() -> None:
    """All types in all versions, names in other case, and invalid namespaces, against the recorded runtime."""
    assert len(opset_tables.pairs()) > 4000
    assert opset_tables.disagreements() == []


@pytest.mark.skipif(not NIGHTLY, reason="asks OpenVINO about thousands of layers: make test-all")
def test_the_recorded_opsets_equal_the_runtimes() -> None:
    command = [sys.executable, "-m", "tests.opset_tables", "--check"]  # a new process: it forks
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr or "run python -m tests.opset_tables"


@pytest.mark.parametrize(
    ("type", "version", "opset"),
    [
        ("ReLU", "opset5", "opset1"),
        ("relu", "opset1", "opset1"),
        ("MVN", "opset1", "opset2"),
        ("ROIPooling", "opset1", "opset2"),
        ("ReorgYolo", "opset1", "opset2"),
        ("LogicalXor", "opset1", "opset2"),
        ("GRUCell", "experimental", "opset3"),
        ("RNNCell", "extension", "opset1"),
        ("Proposal", "extension", "opset4"),
        ("ExperimentalDetectronTopKROIs", "experimental", "opset6"),
        ("Softmax", "opset9", "opset8"),
        ("Pad", "ngraph", "ngraph"),
        ("Convolution", "onednn", "onednn"),
    ],
)
def test_aliases(type: str, version: str, opset: str) -> None:
    assert resolve(type, version)[0].opset == opset


@pytest.mark.parametrize(
    ("type", "version"),
    [
        *(("RNNCell", "opset2"), ("ShuffleChannels", "opset2"), ("Reverse", "opset2"), ("Xor", "opset3")),
        *(("LSTMSequence", "opset1"), ("Gelu", "opset1"), ("ReLU", "opset18"), ("ReLU", "opset0"), ("ReLU", "")),
        *(("LSTMCell", "extension"), ("RMS", "ie_internal_opset"), ("Pad", "onednn"), ("Convolution", "ngraph")),
    ],
)
def test_unknown(type: str, version: str) -> None:
    with pytest.raises(UnknownOperation) as caught:
        resolve(type, version)
    assert caught.value.types == ((type, version),)


def test_more_lenient_than_the_unfinished_opset17() -> None:
    cls, note = resolve("ReLU", "opset17")
    assert cls.opset == "opset1"
    assert note is not None
    assert "opset17" in note
    assert resolve("ErfInv", "opset17")[1] is None
    assert resolve("Parameter", "opset17")[1] is None
