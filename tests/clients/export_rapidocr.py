"""Converts the ONNX models in the wheel of rapidocr-openvino to IR: python export_rapidocr.py FOLDER."""

import sys
from importlib.util import find_spec
from pathlib import Path

import openvino as ov

for path in (Path(find_spec("rapidocr_openvino").origin).parent / "models").glob("*.onnx"):
    ov.save_model(ov.Core().read_model(path), Path(sys.argv[1]) / f"{path.stem}.xml", compress_to_fp16=False)
