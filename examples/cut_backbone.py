"""Cuts the backbone off a detector and runs it: python examples/cut_backbone.py OUT.xml [MODEL.xml [END]]

`MODEL.xml` is the detector, `END` the tensor or the pattern of layers at the end of its backbone. By default the model
is the classifier of digits instead of a detector, and its backbone ends with the second pooling.
"""

import sys
from pathlib import Path

import numpy as np

import irload
from irload import edit

DIGITS = Path(__file__).parents[1] / "models" / "digits" / "model.xml"


def random_inputs(model: irload.Model) -> dict[str, np.ndarray]:
    """Random floats for each input; dynamic dims are 1."""
    rng = np.random.default_rng(0)
    shapes = {p.any_name: [d.lo or 1 for d in p.partial_shape] for p in model.inputs}
    return {name: rng.random(shape, np.float32) for name, shape in shapes.items()}


if __name__ == "__main__":
    if not 2 <= len(sys.argv) <= 4:
        sys.exit(f"usage: {sys.argv[0]} OUT.xml [MODEL.xml [END]]")
    target, file, end = (*sys.argv[1:], *(None, DIGITS, "pool1")[len(sys.argv) - 1 :])
    detector = irload.read_model(file)
    backbone = edit.extract(detector, None, end)
    head = edit.extract(detector, [p.any_name for p in backbone.outputs])
    irload.save_model(backbone, target)

    inputs = random_inputs(detector)
    features = irload.compile_model(target)(inputs)
    for port in backbone.outputs:
        print(f"{port.any_name}: {features[port.any_name].dtype}{list(features[port.any_name].shape)}")
    whole, parts = irload.compile_model(detector)(inputs), irload.compile_model(head)(list(features.values()))
    for port in detector.outputs:
        np.testing.assert_allclose(parts[port.index], whole[port.index], rtol=1e-4, atol=1e-5)
    print("backbone and head give the outputs of the model")
