"""Runs `outputs(folder)` of a script on irload or on OpenVINO, and saves the arrays that it returns.

python child.py SCRIPT irload|runtime FOLDER OUT.npz
"""

import importlib.util
import runpy
import sys
from pathlib import Path

import numpy as np

script, module, folder, out = sys.argv[1:]
if module == "irload":
    if importlib.util.find_spec("openvino") is not None:
        sys.exit("this environment has OpenVINO, so the test would not show that irload replaces it")
    import irload.openvino

    irload.openvino.install()
np.savez(out, **runpy.run_path(script)["outputs"](Path(folder)))
if module == "irload" and sys.modules["openvino"] is not irload.openvino:
    sys.exit("the client has not imported irload")
