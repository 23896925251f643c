"""The XML schema of IR: current, valid, not too strict for files of OpenVINO and not too lenient to detect faults."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from lxml import etree

from irload.ops.registry import registered
from schemas.make import TARGET, schema
from tests.harness import runtime
from tests.harness.case import GENERATORS
from tests.harness.ir import ir_of
from tests.harness.recorded import agrees
from tests.ops.families import load_families

load_families()
MODELS = sorted((Path(__file__).parents[1] / "models").glob("*/model.xml"))
DIGITS = (Path(__file__).parents[1] / "models" / "digits" / "model.xml").read_text(encoding="utf-8")
LOOP = (Path(__file__).parents[1] / "models" / "loop" / "model.xml").read_text(encoding="utf-8")
RELAX = etree.RelaxNG(etree.parse(TARGET))


def faults(text: str | bytes) -> list[str]:
    tree = etree.fromstring(text.encode() if isinstance(text, str) else text)
    return [] if RELAX.validate(tree) else [str(e) for e in RELAX.error_log] or ["invalid"]


def test_it_is_current():
    assert TARGET.read_text(encoding="utf-8") == schema(), "run python -m schemas.make"


def test_every_operation_is_in_it():
    text = TARGET.read_text(encoding="utf-8")
    missing = [c.type for c in registered() if c.namespace == "opset" and f'"{c.type}-{c.opset}"' not in text]
    assert missing == []


@pytest.mark.parametrize("file", MODELS, ids=lambda f: f.parent.name)
def test_models_of_the_repository_are_valid(file):
    assert faults(file.read_bytes()) == []


@pytest.mark.one_in(9)
@pytest.mark.parametrize("row", sorted(GENERATORS), ids="-".join)
def test_files_by_openvino_are_valid(row, tmp_path):
    rng = np.random.default_rng(zlib.crc32("-".join(row).encode()))
    cases = [generate(rng) for generate in GENERATORS[row][:2]]
    for case in cases:
        for version in (10, 11):
            assert faults(ir_of(case, version=version)[0]) == []

    def compare():
        for case in cases:
            try:
                model = runtime.read(case)
            except runtime.Rejected:
                continue
            ov.serialize(model, tmp_path / "model.xml")
            assert faults((tmp_path / "model.xml").read_bytes()) == []

    agrees(f"schema {'-'.join(row)}", (TARGET.read_bytes(), *(piece for c in cases for piece in ir_of(c))), compare)


@pytest.mark.parametrize(
    ("text", "old", "new"),
    [
        (DIGITS, 'strides="1,1"', 'stride="1,1"'),
        (DIGITS, 'strides="1,1"', 'strides="1,x"'),
        (DIGITS, 'auto_pad="explicit"', 'auto_pad="notset"'),
        (DIGITS, ' kernel="2,2"', ""),
        (DIGITS, 'type="ReLU" version="opset1"', 'type="ReLUs" version="opset1"'),
        (DIGITS, 'type="Convolution" version="opset1"', 'type="Convolution" version="opset99"'),
        (DIGITS, 'version="11"', 'version="9"'),
        (DIGITS, 'precision="FP32"', 'precision="fp32"'),
        (DIGITS, 'element_type="f32"', 'element_type="float"'),
        (DIGITS, "<dim>32</dim>", "<dim>?</dim>"),
        (DIGITS, "<dim>32</dim>", "<dims>32</dims>"),
        (DIGITS, 'to-port="0"', 'toport="0"'),
        (DIGITS, "<layers>", "<layers x='1'>"),
        (LOOP, "external_port_id", "external_port"),
        (LOOP, 'purpose="execution_condition"', 'purpose="condition"'),
        (LOOP, "<back_edges>", "<back_edges x='1'>"),
    ],
)
def test_invalid_files_are_detected(text, old, new):
    assert old in text
    assert faults(text.replace(old, new, 1)) != []


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('type="ReLU" version="opset1"', 'type="Strange" version="mine"'),
        ('type="ReLU" version="opset1"', 'type="relu" version="opset13"'),
        ('strides="1,1"', 'strides=" 1, 1,"'),
        ('auto_pad="explicit"', 'auto_pad="EXPLICIT"'),
        ('strides="1,1"', 'strides="1,1" PrimitivesPriority="cpu"'),
        ("</layers>", "</layers><rt_info><a b='1'><c/>x</a></rt_info>"),
    ],
)
def test_files_that_the_runtime_reads_are_valid(old, new):
    assert old in DIGITS
    assert faults(DIGITS.replace(old, new, 1)) == []
