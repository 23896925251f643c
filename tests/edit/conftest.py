"""The models that the tests of irload.edit change."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import irload
from tests.edit.source import Source

MODELS = Path(__file__).parents[2] / "models"
NAMES = ("conv_openvino", "digits", "dynamic", "loop", "pad_openvino", "state")


@pytest.fixture(scope="session")
def sources() -> dict[str, Source]:
    """The models of the repository that OpenVINO reads, run once."""
    return {name: Source.of(MODELS / name / "model.xml") for name in NAMES}


@pytest.fixture
def digits() -> irload.Model:
    return irload.read_model(MODELS / "digits" / "model.xml")


@pytest.fixture(scope="session")
def image() -> np.ndarray:
    return np.load(MODELS / "digits" / "digit_7_0.npy")
