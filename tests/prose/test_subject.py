"""Commit subjects: `area: imperative …`, at most 72 characters."""

from __future__ import annotations

import pytest

from tests.prose.subject import complaint, main


@pytest.mark.parametrize(
    "subject",
    [
        "cli/completion: quote layer names",
        "README: add a table of commands",
        "plan/memory, docs: keep a residual alive while its norm runs",
        "ops: pass axes by name",
        "core: embed limits in the schema",
        "core: reject shapes whose rank is unknown when a limit is set",
        "tests/prose: bring the list up to date",
        "Merge branch 'wave-a'",
        'Revert "llvm: anything that git quotes"',
        "fixup! cache",
        "a: " + "b" * 69,
    ],
)
def test_accepted(subject):
    assert complaint(subject) is None


@pytest.mark.parametrize(
    ("subject", "reason"),
    [
        ("a: " + "b" * 70, "73 characters"),
        ("quote layer names", "`area: imperative …`"),
        ("cli:quote layer names", "`area: imperative …`"),
        ("cli: ", "`area: imperative …`"),
        ("cache: pieces of a file are read", "imperative after “cache: ”"),
        ("cache: fixed a race", "found “fixed”"),
        ("cache: Adding locks", "found “Adding”"),
        ("cache: a lock per file", "found “a”"),
        ("cache: GridSample is compiled", "a statement"),
        ("cache: lock each file.", "period"),
    ],
)
def test_rejected(subject, reason):
    assert reason in str(complaint(subject))


def test_hook_reads_the_first_line_of_the_message(tmp_path, capsys):
    message = tmp_path / "COMMIT_EDITMSG"
    message.write_text("plan: reuse buffers\n\nThe reason. Fixed in passing: nothing.\n", encoding="utf-8")
    assert main(str(message)) == 0
    message.write_text("reuses buffers\n", encoding="utf-8")
    assert main(str(message)) == 1
    assert "reuses buffers" in capsys.readouterr().err
