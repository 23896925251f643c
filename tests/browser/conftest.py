"""Chromium, and reports to open in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path

import numpy as np
import pytest
from selenium import webdriver

import irload
from tests.browser.driver import browser, open_report
from tests.browser.nets import BLOCKS, LENGTH, WIDTH, large

TENSORS = ("decay*halved", "encoder/layer_0/attention/query/kernel")


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("report")
    large(folder, BLOCKS)
    with chdir(folder):  # the page shows the path unchanged
        model = irload.read_model("model.xml")
        return _made(model, folder)


def _made(model: irload.Model, folder: Path) -> Path:
    assert sum(len(g.nodes) for g in model.walk()) > 40 * BLOCKS
    changed = irload.read_model("model.xml")
    softmax = next(n for n in changed.nodes if n.name == "encoder/layer_3/attention/probabilities")
    softmax.op = type(softmax.op)(axis=1)
    tokens = np.random.default_rng(1).standard_normal((1, LENGTH, WIDTH)).astype(np.float32)
    document = irload.report(
        model, tokens, profile=True, comparison=changed, difference=changed, tensors=TENSORS, threads=1
    )
    document.save(folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="session")
def session(tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    driver = browser(tmp_path_factory.mktemp("profile"))
    yield driver
    driver.quit()


@pytest.fixture(scope="session")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a model with an error in the body of its loop, and many warnings of one kind."""
    folder = tmp_path_factory.mktemp("faulty")
    irload.report(large(folder, 12, fault=True)).save(folder / "report.html")
    return folder / "report.html"


@pytest.fixture(scope="session")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report of a valid model of 2,784 layers."""
    folder = tmp_path_factory.mktemp("sound")
    irload.report(large(folder, 66)).save(folder / "report.html")
    return folder / "report.html"


@pytest.fixture
def page(session: webdriver.Chrome, report: Path) -> webdriver.Chrome:
    return open_report(session, report)
