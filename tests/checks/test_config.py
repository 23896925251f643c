""".irload.toml: the findings that a project ignores."""

from __future__ import annotations

import pytest

import irload
from irload.checks.config import find_config, load_config
from irload.errors import IRError
from irrun.main import FINDINGS, OK, USAGE
from tests.checks.test_reports import REPORT, SARIF, write


def configured(folder, text):
    (folder / ".irload.toml").write_text(text, encoding="utf-8")


EXEMPT = '[[check.exempt]]\ncode = "{}"\nlayer = "{}"\nfile = "{}"\nreason = "known"\n'


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", ["IR401", "IR701"]),
        ('[check]\nignore = ["IR401"]', ["IR701"]),
        ('[check]\nignore = ["IR7", "IR4"]', []),
        ('[check]\nselect = ["IR4"]', ["IR401"]),
        (EXEMPT.format("IR401", "*conv", "*"), ["IR701"]),
        (EXEMPT.format("IR4", "*", "sub/*.xml"), ["IR701"]),
        (EXEMPT.format("IR401", "relu", "*"), ["IR401", "IR701"]),
        (EXEMPT.format("IR402", "*", "*"), ["IR401", "IR701"]),
        (EXEMPT.format("IR401", "*", "other/*.xml"), ["IR401", "IR701"]),
    ],
)
def test_ignored_findings(text, codes, tmp_path):
    configured(tmp_path, text)
    file = write(tmp_path, "IR401", "IR701", name="sub/model.xml")
    report = irload.check(file, config=load_config(tmp_path / ".irload.toml"))
    assert sorted(f.code for f in report.findings) == codes
    if "select" not in text:
        assert sorted([*codes, *(s.finding.code for s in report.suppressed)]) == ["IR401", "IR701"]


SILENCING = '[check]\nignore = ["IR"]\n'


def test_an_untrusted_configuration_is_ignored(irrun, tmp_path, monkeypatch):
    """A file next to a model, or above it, came with the model."""
    file = write(tmp_path, "IR401", name="theirs/sub/model.xml")
    (tmp_path / "ours").mkdir()
    monkeypatch.chdir(tmp_path / "ours")
    for folder in (file.parent, file.parent.parent, tmp_path):
        configured(folder, SILENCING)
        assert irrun("check", file).code == FINDINGS
        assert irload.check(file).errors == 1
    outcome = irrun("check", file, "--config", tmp_path / ".irload.toml")
    assert outcome.code == OK
    assert ".irload.toml: ignores IR" in outcome.err
    assert "1 finding suppressed" in outcome.out


def test_the_working_directory_counts_and_is_reported(irrun, tmp_path, monkeypatch):
    file = write(tmp_path, "IR401", name="sub/model.xml")
    configured(tmp_path, SILENCING + "strict = true\n" + EXEMPT.format("IR2", "*", "*"))
    assert find_config(tmp_path).ignore == ("IR",)
    monkeypatch.chdir(tmp_path)
    outcome = irrun("check", file)
    assert outcome.code == OK
    assert "irrun: .irload.toml: ignores IR; 1 exemption; strict" in outcome.err
    assert "exemption of IR2 of .irload.toml suppresses nothing" in outcome.out
    assert irrun("check", file, "--no-config").code == FINDINGS


def test_suppressed_findings_are_counted_everywhere(irrun, tmp_path, monkeypatch):
    file = write(tmp_path, "IR401", "IR701")
    monkeypatch.chdir(tmp_path)
    configured(tmp_path, EXEMPT.format("IR401", "*conv", "*") + EXEMPT.format("IR402", "*", "*"))
    report = irrun("check", file, "--json", "--ignore", "IR7").json
    REPORT.validate(report)
    assert report["suppressed"] == 2
    by = {s["code"]: s["suppressed_by"] for f in report["files"] for s in f["suppressed"]}
    assert by["IR701"] == {"source": "ignore", "reason": ""}
    assert by["IR401"] == {"source": "exemption of IR401 on layer *conv of .irload.toml", "reason": "known"}
    assert [s["source"] for s in report["unused_suppressions"]] == ["exemption of IR402 of .irload.toml"]
    log = irrun("check", file, "--format", "sarif").json
    SARIF.validate(log)
    (result,) = [r for r in log["runs"][0]["results"] if r["ruleId"] == "IR401"]
    (suppression,) = result["suppressions"]
    assert suppression["kind"] == "external"
    assert suppression["justification"].endswith("known")
    assert not any("suppressions" in r for r in log["runs"][0]["results"] if r["ruleId"] == "IR701")
    (notice,) = log["runs"][0]["invocations"][0]["toolConfigurationNotifications"]
    assert "suppresses nothing" in notice["message"]["text"]


def test_the_command_obeys(irrun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = write(tmp_path, "IR701")
    assert irrun("check", file).code == OK
    configured(tmp_path, "[check]\nstrict = true")
    assert irrun("check", file).code == FINDINGS
    configured(tmp_path, '[check]\ntarget = "2021.4"')
    assert "IR802" in irrun("check", file).out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[check", "is not valid TOML: "),
        ("[other]", "one table"),
        ("check = 1", "one table"),
        ("x = " + "[" * 5000 + "]" * 5000, "nested too deep"),
        ("[check]\nignore = " + "[" * 200 + "]" * 200, "ignore must be a string"),
        ("[check]\nexempt." + ".".join("a" * 3000) + " = 1", "exempt must be a list"),
        ("#" * 70_000, "is larger than 65536 bytes"),
        ('[check]\nignored = ["IR4"]', "unknown key 'ignored'; expected select, ignore, target, strict, exempt$"),
        ("[check]\na = 1\nb = 2", "unknown keys 'a', 'b'; "),
        ('[check]\nignore = "IR4"', "ignore must be a list"),
        ("[check]\nignore = [4]", "ignore must be a string"),
        ("[check]\nstrict = 1", "strict must be a boolean"),
        ("[check]\nexempt = [1]", "exempt must be a table"),
        ('[[check.exempt]]\nlayer = "x"', "code"),
        ('[[check.exempt]]\ncode = "IR4"\nlayers = "x"', "unknown key 'layers'; expected code, layer, file, reason$"),
    ],
)
def test_invalid_configuration_is_rejected(text, words, irrun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    configured(tmp_path, text)
    with pytest.raises(IRError, match=words):
        load_config(tmp_path / ".irload.toml")
    outcome = irrun("check", write(tmp_path, "IR401"))
    assert outcome.code == USAGE
    assert ".irload.toml" in outcome.err


@pytest.mark.parametrize("text", ['[check]\nignore = ["IR9x"]', '[check]\ntarget = "soon"'])
def test_codes_and_releases_must_exist(text, irrun, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    configured(tmp_path, text)
    assert irrun("check", write(tmp_path, "IR401")).code == USAGE
