"""irload's report of threads and BLAS, and the settings of `irrun` before NumPy is imported."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest
import threadpoolctl

import irload
from irload.diagnostics.config import blas_hint, config
from irload.plan.backends import registry
from irload.plan.backends.llvm import available, target

AVX512 = "avx512f avx512bw avx512cd avx512dq avx512vl"


def test_show_config_prints_its_result(capsys):
    lines = irload.show_config()
    shown = capsys.readouterr().out
    assert lines["irload"] == irload.__version__
    assert lines["threads"] >= 1
    for key, value in lines.items():
        assert value is None or f"{key:17} {value}\n" in shown


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
import re
import irload.diagnostics.config
irload.diagnostics.config.blas_hint = lambda: "SkylakeX"
from irrun.main import main
assert main(["--version"]) == 0
print(os.environ["OPENBLAS_CORETYPE"])
"""


@pytest.mark.parametrize(("variable", "used"), [(None, "SkylakeX"), ("Haswell", "Haswell")])
def test_irrun_sets_the_variable_unless_it_is_set(variable, used):
    environment = {k: v for k, v in os.environ.items() if k != "OPENBLAS_CORETYPE"}
    environment |= {"OPENBLAS_CORETYPE": variable} if variable else {}
    command = [sys.executable, "-c", SCRIPT]
    process = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert process.stdout.split()[-1] == used


def test_the_config_shows_kernels_and_caches(monkeypatch, tmp_path):
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("IRLOAD_JIT", "off")
    monkeypatch.setenv("IRLOAD_MODEL_CACHE", "Off")
    shown = config()
    assert shown["compiled kernels"].startswith("none: IRLOAD_JIT=off disables them")
    assert shown["cache"] == str(tmp_path)
    assert shown["kernel cache"] == "0.0 of 256 MiB, 0 files"
    assert shown["model cache"] == "0.0 of 1024 MiB, 0 files; IRLOAD_MODEL_CACHE=Off turns it off"
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    monkeypatch.delenv("IRLOAD_MODEL_CACHE")
    monkeypatch.setattr(available, "host_target", lambda: available.AVX512)
    monkeypatch.setattr(available, "_missing", lambda target: "llvmlite is not installed; pip install 'irload[jit]'")
    assert config()["compiled kernels"].startswith("none: llvmlite is not installed; pip install")
    assert config()["model cache"] == "0.0 of 1024 MiB, 0 files"


def test_the_config_names_the_target(monkeypatch):
    monkeypatch.setattr(available, "_missing", lambda target: None)
    monkeypatch.setattr(target, "_flags", lambda: target.AVX2.flags)
    target._host_target.cache_clear()
    monkeypatch.setenv("IRLOAD_JIT", "avx2")
    try:
        assert re.fullmatch(r"llvmlite [0-9.]*, for avx2", config()["compiled kernels"])
    finally:
        target._host_target.cache_clear()


@pytest.mark.parametrize("compiled", [True, False])
def test_the_hint_is_for_numpy_kernels(monkeypatch, compiled):
    blas = {"user_api": "blas", "internal_api": "openblas", "version": "0.3.31", "architecture": "Haswell"}
    monkeypatch.setattr(threadpoolctl, "threadpool_info", lambda: [blas])
    monkeypatch.setattr(registry, "compiled_backend", lambda options: object() if compiled else None)
    monkeypatch.setattr("irload.diagnostics.config.blas_hint", lambda: "SkylakeX")
    hint = config()["hint"]
    assert (hint is None) == compiled
    assert compiled or hint.startswith("set OPENBLAS_CORETYPE=SkylakeX before Python starts")


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="needs an affinity mask")
def test_processors_that_the_process_may_not_use_do_not_count():
    code = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))}); import irload; irload.show_config()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert re.search(r"^processors +1$", done.stdout, re.MULTILINE)
