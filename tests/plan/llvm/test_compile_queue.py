"""Kernels that several threads compile."""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from irload.plan.backends.llvm import compile_queue
from irload.plan.backends.llvm import library as libraries
from irload.plan.backends.llvm.builder import Function
from irload.plan.backends.llvm.cache import ObjectCache
from irload.plan.backends.llvm.compile_queue import CompileQueue
from irload.plan.backends.llvm.kernel import Kernel
from irload.plan.backends.llvm.loader import Code
from irload.plan.backends.llvm.parts import Codes
from irload.plan.backends.llvm.target import AVX2
from irload.record import record
from tests.plan.llvm.tiny import Fill, Units, compiled, filled

pytest.importorskip("llvmlite")

KERNELS = [Fill(k, table=k % 2 == 0) for k in range(24)]


@record()
class Broken(Units):
    """A kernel whose text is not IR."""

    units: int = 1

    def write(self, function: Function) -> None:
        function.emit("no instruction")


@pytest.fixture(autouse=True)
def library(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> libraries.Library:
    """A library with an empty cache, in place of the library of the process."""
    empty = libraries.Library(ObjectCache(tmp_path))
    for module in (libraries, compile_queue):
        monkeypatch.setattr(module, "library", empty)
    return empty


def helpers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "irload-compile"]


def wait_for_helpers() -> None:
    for thread in helpers():
        thread.join(60)
    assert not helpers()


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_code_is_the_same_with_any_number_of_threads(library: libraries.Library, threads: int) -> None:
    codes: dict[Kernel, Code] = {}
    with CompileQueue(codes, AVX2, threads) as queue:
        for kernel in KERNELS * 2:
            queue.add(kernel)
        assert len(helpers()) == threads - 1
        queue.complete()
        objects = [library.code(kernel, AVX2).data for kernel in KERNELS]
    assert objects == [compiled(kernel) for kernel in KERNELS]
    assert library.compiled == len(KERNELS)
    wait_for_helpers()
    assert list(codes) == [] if threads == 1 else set(codes) == set(KERNELS)
    for kernel in KERNELS:
        assert np.array_equal(filled(kernel), np.full(8, kernel.number, np.float32))


def test_cached_kernels_start_no_threads(library: libraries.Library) -> None:
    stored = [library.code(kernel, AVX2).data for kernel in KERNELS]
    codes: dict[Kernel, Code] = {}
    with CompileQueue(codes, AVX2, 4) as queue:
        for kernel in KERNELS:
            queue.add(kernel)
        assert not helpers()
    assert [codes[kernel].data for kernel in KERNELS] == stored
    assert library.compiled == len(KERNELS)


@pytest.mark.parametrize(("threads", "default", "expected"), [(1, 3, 2), (4, 1, 3), (1, 1, 0)])
def test_a_model_of_one_thread_compiles_in_several(
    threads: int, default: int, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("IRLOAD_NUM_THREADS", str(default))
    with Codes(AVX2, threads).in_parallel() as codes:
        for kernel in KERNELS:
            codes.request(kernel)
        assert len(helpers()) == expected
    wait_for_helpers()


def test_the_caller_gets_the_error_of_a_kernel(library: libraries.Library) -> None:
    codes: dict[Kernel, Code] = {}
    with CompileQueue(codes, AVX2, 2) as queue:
        queue.add(Broken())
        queue.add(KERNELS[0])
        with pytest.raises(RuntimeError, match="no instruction"):
            library.code(Broken(), AVX2)
    wait_for_helpers()
    assert Broken() not in codes


def test_leaving_drops_kernels_that_no_thread_has_begun(
    library: libraries.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, proceed = threading.Event(), threading.Event()
    compile_object = libraries.compile_object

    def compiling(*arguments: Any, **options: Any) -> bytes:
        started.set()
        assert proceed.wait(60)
        return compile_object(*arguments, **options)

    monkeypatch.setattr(libraries, "compile_object", compiling)
    with suppress(KeyboardInterrupt), CompileQueue({}, AVX2, 2) as queue:
        for kernel in KERNELS:
            queue.add(kernel)
        assert started.wait(60)
        raise KeyboardInterrupt
    proceed.set()
    wait_for_helpers()
    assert library.compiled == 1


def test_without_more_threads_the_caller_compiles(library: libraries.Library, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    codes: dict[Kernel, Code] = {}
    with CompileQueue(codes, AVX2, 2) as queue:
        queue.add(KERNELS[0])
        queue.complete()
    assert set(codes) == {KERNELS[0]}
    assert library.compiled == 1


def test_a_kernel_that_two_threads_need_is_compiled_once(
    library: libraries.Library, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_object = libraries.compile_object

    def compiling(*arguments: Any, **options: Any) -> bytes:
        time.sleep(0.05)
        return compile_object(*arguments, **options)

    monkeypatch.setattr(libraries, "compile_object", compiling)
    results: list[Code] = []
    threads = [threading.Thread(target=lambda: results.append(library.code(KERNELS[0], AVX2))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert library.compiled == 1
    assert len(set(map(id, results))) == 1
