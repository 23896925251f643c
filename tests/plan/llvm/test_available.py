"""The conditions for compiled kernels, and the warnings if they are unavailable."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import irload
from irload.options import Options
from irload.plan.backends.llvm import available, compiler, library, loader, target
from irload.plan.backends.llvm.target import AMX, AVX2, AVX512, AVX512_BF16, host_target
from irload.plan.backends.registry import backends, compiled_backend

pytest.importorskip("llvmlite")

MODEL = Path(__file__).parents[3] / "models" / "digits" / "model.xml"
IMAGE = np.zeros((1, 1, 8, 8), np.float32)


def forget() -> None:
    """Clear the results that a process computes once."""
    for function in (target._host_target, available._missing, available._backend, compiler.is_installed):
        function.cache_clear()


@pytest.fixture(autouse=True)
def anew(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    forget()
    yield
    monkeypatch.undo()
    forget()


@pytest.fixture
def processor(monkeypatch: pytest.MonkeyPatch):
    """A processor that reports these flags."""

    def states(flags: frozenset[str]) -> None:
        monkeypatch.setattr(target, "_flags", lambda: flags)
        monkeypatch.setattr(target, "tiles_are_permitted", lambda: True)
        forget()

    return states


def named(jit: bool | None = None, precision: str = "f32") -> str | None:
    result = compiled_backend(Options(jit=jit, precision=precision))
    return None if result is None else result.target.name


@pytest.mark.parametrize(
    ("cpu", "best"), [(AMX, "amx"), (AVX512_BF16, "avx512_bf16"), (AVX512, "avx512"), (AVX2, "avx2")]
)
def test_the_best_that_the_processor_has(processor, monkeypatch, cpu, best) -> None:
    processor(cpu.flags)
    for asked in ("", "auto", "on", "1", " YES "):
        monkeypatch.setenv("IRLOAD_JIT", asked)
        actual = host_target()
        assert actual is not None
        assert actual.name == best
    monkeypatch.delenv("IRLOAD_JIT")
    assert host_target() is actual


def test_a_processor_without_any(processor, monkeypatch) -> None:
    processor(frozenset({"sse4_2"}))
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    assert named() is None
    with pytest.raises(irload.Unsupported, match=r"require Linux on x86-64 with AVX2"):
        compiled_backend(Options(jit=True))


@pytest.mark.parametrize("off", ["off", "0", "no", "False"])
def test_switched_off(processor, monkeypatch, off) -> None:
    processor(AVX2.flags)
    monkeypatch.setenv("IRLOAD_JIT", off)
    assert named() is None
    with pytest.raises(
        irload.InputInvalid, match=r"^jit=True \(irrun --jit\) requires compiled kernels, which IRLOAD_JIT=\w+ disables"
    ):
        irload.compile_model(MODEL, jit=True)
    assert irload.compile_model(MODEL)(IMAGE)[0].shape == (1, 10)


def test_a_target_by_name(processor, monkeypatch) -> None:
    processor(AVX512.flags)
    monkeypatch.setenv("IRLOAD_JIT", "avx2")
    assert host_target() is AVX2
    monkeypatch.setenv("IRLOAD_JIT", "amx")
    with pytest.raises(irload.Unsupported, match=r"is amx, but this processor has no .*amx_tile"):
        irload.compile_model(MODEL)(IMAGE)
    monkeypatch.setenv("IRLOAD_JIT", "sse")
    with pytest.raises(
        irload.InputInvalid,
        match="must be off, auto or one of amx, avx512_bf16, avx512_vnni, avx512, avx_vnni, avx2, found 'sse'",
    ):
        irload.compile_model(MODEL)(IMAGE)
    assert irload.compile_model(MODEL, jit=False)(IMAGE)[0].shape == (1, 10), "a setting of off is silent"


def test_without_llvmlite(processor, monkeypatch) -> None:
    processor(AVX2.flags)
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    monkeypatch.setattr(compiler, "find_spec", lambda name: None)
    assert named() is None
    assert [b.name for b in backends(Options())] == ["numpy"]
    with pytest.raises(irload.Unsupported, match=r"llvmlite is not installed; pip install 'irload\[jit\]'"):
        irload.compile_model(MODEL, jit=True)


@pytest.mark.parametrize(
    ("fault", "said"),
    [
        (OSError(13, "the system does not allow executable memory"), "the system refuses: .*executable memory"),
        (RuntimeError("LLVM IR parsing error"), "llvmlite cannot be used: LLVM IR parsing error"),
        (ImportError("libLLVM.so is missing"), "llvmlite cannot be used: libLLVM"),
    ],
)
def test_a_failure_at_the_first_kernel_disables_them(processor, monkeypatch, fault: Exception, said: str) -> None:
    processor(AVX2.flags)
    monkeypatch.setenv("IRLOAD_JIT", "auto")

    def fails(*_: object) -> None:
        raise fault

    monkeypatch.setattr(library.Library, "code", fails)
    assert named() is None
    assert irload.compile_model(MODEL)(IMAGE)[0].shape == (1, 10)
    with pytest.raises(irload.Unsupported, match=said):
        irload.compile_model(MODEL, jit=True)


def test_memory_that_may_not_be_executed(processor, monkeypatch) -> None:
    """As on hardened systems: NumPy runs the model."""
    processor(AVX2.flags)
    monkeypatch.setenv("IRLOAD_JIT", "auto")

    def refused(base: int, size: int) -> None:
        raise OSError(13, "the system does not allow executable memory")

    monkeypatch.setattr(loader, "_protect", refused)
    monkeypatch.setattr(library, "library", library.Library())
    assert named() is None
    assert irload.compile_model(MODEL)(IMAGE)[0].shape == (1, 10)


def test_precisions(processor, monkeypatch) -> None:
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    processor(AVX2.flags)
    assert named(None, "auto") == "avx2"
    with pytest.raises(
        irload.Unsupported, match="requires a processor with AMX or AVX512_BF16, and kernels are for avx2"
    ):
        compiled_backend(Options(precision="bf16"))
    with pytest.raises(irload.InputInvalid, match="must be one of f32, bf16, auto, found 'f16'"):
        Options(precision="f16")
    with pytest.raises(irload.InputInvalid, match="jit=False"):
        Options(jit=False, precision="bf16")


LOADED = "import sys; assert not [m for m in sys.modules if m.split('.')[0] == 'llvmlite'], 'llvmlite was imported'"
RUN = f"""
import numpy as np, irload
model = irload.compile_model({str(MODEL)!r}, threads=1, jit=True)
assert model(np.zeros((1, 1, 8, 8), np.float32))[0].shape == (1, 10)
"""


def python(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "IRLOAD_CACHE_DIR": str(folder), "IRLOAD_JIT": "auto"}
    return subprocess.run([sys.executable, "-c", program], env=environment, text=True, capture_output=True, check=False)


def test_llvmlite_is_imported_by_a_compilation_alone(tmp_path: Path) -> None:
    if host_target() is None and "avx2" not in target._flags():
        pytest.skip("this processor has no compiled kernels")
    for program in (
        "import irload; irload.compile_model",
        "from irrun.main import main; main(['--help'])",
        f"from irrun.main import main; main(['inspect', {str(MODEL)!r}])",
    ):
        done = python(f"{program}\n{LOADED}", tmp_path)
        assert done.returncode == 0, done.stderr
    done = python(f"{RUN}\n{LOADED}", tmp_path)
    assert "llvmlite was imported" in done.stderr, "the cache was empty"
    done = python(f"{RUN}\n{LOADED}", tmp_path)
    assert done.returncode == 0, done.stderr


def test_a_user_without_a_home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from irload.system import machine

    for name in ("IRLOAD_CACHE_DIR", "XDG_CACHE_HOME", "LOCALAPPDATA"):
        monkeypatch.delenv(name, raising=False)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(machine.Path, "home", homeless)
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    assert machine.cache_folder() == tmp_path / f"irload-{os.getuid()}"
