"""Classifies the handwritten digits in models/digits and shows each image with its class.

python models/digits_demo.py
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import irload

HERE = Path(__file__).resolve().parent / "digits"
SHADES = " .:-=+*#%@"
A_ROW = 5


def drawing(image: np.ndarray) -> list[str]:
    """Return the 8 lines of an 8 × 8 image of 0 to 16, two characters per pixel."""
    return ["".join(SHADES[int(p * 9 / 16)] * 2 for p in row) for row in image.reshape(8, 8)]


def main() -> int:
    model = irload.compile_model(HERE / "model.xml")
    print(f"{model.model.name}: {model.inputs[0]} to {model.outputs[0]}\n")
    files = sorted(HERE.glob("digit_*_0.npy"))
    right = 0
    for k in range(0, len(files), A_ROW):
        columns: list[list[str]] = []
        for file in files[k : k + A_ROW]:
            image = np.load(file)
            probabilities = model(image)[0][0]
            answer = int(probabilities.argmax())
            right += answer == int(file.stem.split("_")[1])
            columns.append(
                [*drawing(image), f"{file.stem}:".center(16), f"{answer} ({probabilities[answer]:.1%})".center(16)]
            )
        print("\n".join("  ".join(line).rstrip() for line in zip(*columns, strict=True)), end="\n\n")
    print(f"{right} of {len(files)} right")
    return 0 if right == len(files) else 1


if __name__ == "__main__":
    sys.exit(main())
