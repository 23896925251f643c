"""A model in files, and a private cache for plans."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from irload.plan.backends.llvm.target import host_target

XML = """<?xml version="1.0"?>
<net name="small" version="11">
<layers>
<layer id="0" name="x" type="Parameter" version="opset1"><data shape="{batch},3,9,9" element_type="f32"/>
<output><port id="0" precision="FP32" names="image">{dims}</port></output></layer>
<layer id="1" name="w" type="Const" version="opset1">
<data element_type="f32" shape="8,3,3,3" offset="0" size="864"/>
<output><port id="0" precision="FP32"><dim>8</dim><dim>3</dim><dim>3</dim><dim>3</dim></port></output></layer>
<layer id="2" name="conv" type="Convolution" version="opset1">
<data strides="1,1" dilations="1,1" pads_begin="1,1" pads_end="1,1" auto_pad="explicit"/>
<input><port id="0"/><port id="1"/></input>
<output><port id="2" precision="FP32">{output_dims}</port></output></layer>
<layer id="3" name="{name}" type="{type}" version="opset1"><input><port id="0"/></input>
<output><port id="1" precision="FP32" names="y">{output_dims}</port></output></layer>
<layer id="4" name="out" type="Result" version="opset1"><input><port id="0"/></input></layer>
</layers>
<edges>
<edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
<edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
<edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
<edge from-layer="3" from-port="1" to-layer="4" to-port="0"/>
</edges>
</net>
"""


def write(folder: Path, *, batch: int = 2, type: str = "ReLU", scale: float = 1, channels: int = 3) -> Path:
    """A convolution and a function. `batch` −1 makes it dynamic; the declared shape of x need not be true."""
    folder.mkdir(exist_ok=True)
    dims, shapes = ("".join(f"<dim>{n}</dim>" for n in (batch, c, 9, 9)) for c in (channels, 8))
    text = XML.format(batch="?" if batch < 0 else batch, dims=dims, output_dims=shapes, name=type.lower(), type=type)
    (folder / "model.xml").write_text(text, encoding="utf-8")
    weights = np.random.default_rng(3).standard_normal(216).astype(np.float32) * np.float32(scale)
    (folder / "model.bin").write_bytes(weights.tobytes())
    return folder / "model.xml"


def image(seed: int = 0, batch: int = 2) -> np.ndarray:
    """An input of the model."""
    return np.random.default_rng(seed).random((batch, 3, 9, 9), np.float32)


@pytest.fixture(autouse=True)
def kernels(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Compiled kernels, and an empty cache."""
    pytest.importorskip("llvmlite")
    monkeypatch.setenv("IRLOAD_JIT", "auto")
    monkeypatch.setenv("IRLOAD_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.delenv("IRLOAD_MODEL_CACHE", raising=False)
    if host_target() is None:
        pytest.skip("kernels are not written for this machine")


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write(tmp_path / "model")
