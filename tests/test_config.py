"""What irload says of threads and BLAS, and what `irrun` sets before NumPy loads."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

import irload
from irload.config import blas_hint

AVX512 = "avx512f avx512bw avx512cd avx512dq avx512vl"


def test_show_config_prints_what_it_returns(capsys):
    found = irload.show_config()
    shown = capsys.readouterr().out
    assert found["irload"] == irload.__version__
    assert found["threads"] >= 1
    for key, value in found.items():
        assert value is None or f"{key:16} {value}\n" in shown


@pytest.mark.parametrize(
    ("vendor", "flags", "hint"),
    [
        ("AuthenticAMD", f"fpu avx2 {AVX512}", "SkylakeX"),
        ("AuthenticAMD", "fpu avx2", None),
        ("AuthenticAMD", "fpu avx2 avx512f", None),
        ("GenuineIntel", f"fpu avx2 {AVX512}", None),
    ],
)
def test_the_hint_is_for_amd_with_avx512(tmp_path, vendor, flags, hint):
    file = tmp_path / "cpuinfo"
    file.write_text(f"processor\t: 0\nvendor_id\t: {vendor}\nflags\t\t: {flags}\n\nprocessor\t: 1\n")
    assert blas_hint(str(file)) == hint


def test_no_hint_without_cpuinfo(tmp_path):
    assert blas_hint(str(tmp_path / "none")) is None
    (tmp_path / "odd").write_bytes(b"\xff:\n::\n")
    assert blas_hint(str(tmp_path / "odd")) is None


SCRIPT = """
import os
import irload.config
irload.config.blas_hint = lambda: "SkylakeX"
from irrun.main import main
assert main(["--version"]) == 0
print(os.environ["OPENBLAS_CORETYPE"])
"""


@pytest.mark.parametrize(("given", "used"), [(None, "SkylakeX"), ("Haswell", "Haswell")])
def test_irrun_sets_the_variable_unless_it_is_set(given, used):
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    environment |= {"OPENBLAS_CORETYPE": given} if given else {}
    command = [sys.executable, "-c", SCRIPT]
    found = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert found.stdout.split()[-1] == used
