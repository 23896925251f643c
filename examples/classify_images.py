"""Classifies PNG images of digits: python examples/classify_images.py OUT.jsonl

The same as a command: irrun batch models/digits/model.xml PNGS -o OUT.jsonl --labels models/digits/labels.txt \
    --scale 15.9375
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from irrun.main import main

DIGITS = Path(__file__).parents[1] / "models" / "digits"


def as_images(folder: Path) -> None:
    """Write the digits as 8 × 8 grey PNG images. The model expects 0 to 16 for black to white."""
    for file in DIGITS.glob("digit_*.npy"):
        pixels = np.load(file)[0, 0] * 255 / 16
        Image.fromarray(pixels.round().astype(np.uint8)).save(folder / f"{file.stem}.png")


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} OUT.jsonl")
    with tempfile.TemporaryDirectory() as pngs:
        as_images(Path(pngs))
        words = ["-o", sys.argv[1], "--labels", str(DIGITS / "labels.txt"), "--top", "3", "--scale", "15.9375"]
        sys.exit(main(["batch", str(DIGITS / "model.xml"), pngs, *words]))
