"""Fixtures of the tests of batches: `irrun` and `irrun batch`, run in this process."""

from __future__ import annotations

import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from irrun.main import OK, main
from tests.batch.kill import MODEL
from tests.cli.conftest import Outcome

SCHEMA = MODEL.parents[2] / "schemas" / "batch.schema.json"


@pytest.fixture
def irrun(capsys: pytest.CaptureFixture[str]):
    """Runs the command line in this process."""

    def run(*words: object) -> Outcome:
        code = main([str(w) for w in words])
        captured = capsys.readouterr()
        return Outcome(code, captured.out, captured.err)

    return run


@pytest.fixture
def batch(irrun, request: pytest.FixtureRequest):
    """Runs `irrun batch`, by default on the digits model, and returns its checked report, or its text on stderr.

    With one worker unless the test's module sets SEVERAL_WORKERS: each worker is a process that takes time to start.
    """
    workers = () if getattr(request.module, "SEVERAL_WORKERS", False) else ("--workers", "1")

    def run(*words: object, model: object = MODEL, code: int = OK) -> Any:
        outcome = irrun("batch", model, *(() if "--workers" in words else workers), *words, "--json")
        assert outcome.code == code, outcome.err
        if not outcome.out:
            return outcome.err
        Draft202012Validator(json.loads(SCHEMA.read_text(encoding="utf-8"))).validate(outcome.json)
        return outcome.json

    return run
