"""Runs a model over a folder of arrays."""

from pathlib import Path

from irload.batch import predict

digits = Path(__file__).parents[1] / "models" / "digits"

for result in predict(digits / "model.xml", digits / "digit_*.npy"):
    print(Path(result.input).stem, result.error or result.outputs["probabilities"].argmax())
