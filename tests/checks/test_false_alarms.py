"""Files written by OpenVINO give no errors or warnings. A larger sample: python -m tests.false_alarms."""

from __future__ import annotations

import numpy as np
import openvino as ov
import openvino.opset8 as opset

import irload
from tests import false_alarms


def test_no_false_alarms():
    checked, alarms = false_alarms.run(60, 1)
    assert checked == 60
    assert alarms == []


def test_circular_padding(tmp_path):
    """PyTorch pads x at the front by x[-1:n], in which n is the length of x."""
    x = opset.parameter(ov.PartialShape([2, ov.Dimension(1, 8)]), np.float32, name="x")
    x.output(0).set_names({"x"})
    length = opset.gather(opset.shape_of(x), opset.constant([1]), opset.constant(0))
    one = opset.constant([1])
    end = opset.slice(x, opset.constant([-1]), length, one, one)
    assert end.output(0).partial_shape == ov.PartialShape([2, 1])
    padded = opset.concat([end, x], 1)
    padded.output(0).set_names({"y"})
    ov.save_model(ov.Model([padded], [x]), tmp_path / "model.xml", compress_to_fp16=False)
    findings = irload.check(tmp_path / "model.xml").findings
    assert [(f.code, f.severity, f.layer_type) for f in findings] == [("IR407", "note", "Slice")]
    text = (tmp_path / "model.xml").read_text()
    (tmp_path / "model.xml").write_text(text.replace("<dim>1</dim>", "<dim>0</dim>"))
    findings = irload.check(tmp_path / "model.xml").findings
    assert ("IR407", "warning", "Slice") in [(f.code, f.severity, f.layer_type) for f in findings]
