""".irload.toml: what a project has decided to ignore."""

from __future__ import annotations

import pytest

import irload
from irload.checks.config import find_config, load_config
from irload.errors import IRError
from irrun.main import FINDINGS, OK, USAGE
from tests.checks.test_reports import write


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
def test_what_is_ignored(text, codes, tmp_path):
    configured(tmp_path, text)
    file = write(tmp_path, "IR401", "IR701", name="sub/model.xml")
    assert sorted(f.code for f in irload.check(file).findings) == codes


def test_the_nearest_one_counts(tmp_path):
    (tmp_path / "sub").mkdir()
    configured(tmp_path, '[check]\nignore = ["IR4"]')
    configured(tmp_path / "sub", '[check]\ntarget = "2023.2"')
    assert find_config(tmp_path / "sub" / "model.xml").target == "2023.2"
    assert find_config(tmp_path / "model.xml").ignore == ("IR4",)


def test_the_command_obeys(irrun, tmp_path):
    file = write(tmp_path, "IR701")
    assert irrun("check", file).code == OK
    configured(tmp_path, "[check]\nstrict = true")
    assert irrun("check", file).code == FINDINGS
    configured(tmp_path, '[check]\ntarget = "2021.4"')
    assert "IR802" in irrun("check", file).out


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[check", "cannot be read"),
        ("[other]", "one table"),
        ("check = 1", "one table"),
        ('[check]\nignored = ["IR4"]', "knows no ignored"),
        ('[check]\nignore = "IR4"', "ignore must be a list"),
        ("[check]\nignore = [4]", "ignore must be a string"),
        ("[check]\nstrict = 1", "strict must be a boolean"),
        ("[check]\nexempt = [1]", "exempt must be a table"),
        ('[[check.exempt]]\nlayer = "x"', "code"),
        ('[[check.exempt]]\ncode = "IR4"\nlayers = "x"', "layers"),
    ],
)
def test_what_is_not_understood_is_refused(text, words, irrun, tmp_path):
    configured(tmp_path, text)
    with pytest.raises(IRError, match=words):
        load_config(tmp_path / ".irload.toml")
    found = irrun("check", write(tmp_path, "IR401"))
    assert found.code == USAGE
    assert ".irload.toml" in found.err


@pytest.mark.parametrize("text", ['[check]\nignore = ["IR9x"]', '[check]\ntarget = "soon"'])
def test_codes_and_releases_must_exist(text, irrun, tmp_path):
    configured(tmp_path, text)
    assert irrun("check", write(tmp_path, "IR401")).code == USAGE
