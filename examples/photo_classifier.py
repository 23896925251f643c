"""Builds a classifier that takes photos without preprocessing: python examples/photo_classifier.py OUT.xml

The new model accepts u8 images of any size in NHWC layout: it converts, resizes and scales them. Its weights are
stored in 8 bits. The same as a command: irrun edit models/digits/model.xml -o OUT.xml \
    --embed 'type=u8 resize=bilinear_pillow scale=15.9375 layout=NHWC' --rename image=photo --convert int8
"""

import sys
from pathlib import Path

import numpy as np
from PIL import Image

import irload
from irload import edit

DIGITS = Path(__file__).parents[1] / "models" / "digits"


def photo_of(digit: int) -> Image.Image:
    """A grey image of 60 × 80 pixels. The model was trained on 8 × 8 pixels from 0 to 16."""
    pixels = np.load(DIGITS / f"digit_{digit}_0.npy")[0, 0] * 255 / 16
    return Image.fromarray(pixels.round().astype(np.uint8)).resize((60, 80), Image.Resampling.BICUBIC)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.argv[0]} OUT.xml")
    model = irload.read_model(DIGITS / "model.xml")
    model = edit.embed(model, element="u8", layout="NHWC", resize="bilinear_pillow", scale=255 / 16)
    model = edit.convert(edit.rename(model, {"image": "photo"}), "int8")
    irload.save_model(model, sys.argv[1])

    classifier = irload.compile_model(sys.argv[1])
    labels = (DIGITS / "labels.txt").read_text().split()
    for digit in (3, 7):
        pixels = np.asarray(photo_of(digit))[None, :, :, None]
        scores = classifier({"photo": pixels})["probabilities"][0]
        print(f"a photo of {labels[digit]}: {labels[int(scores.argmax())]} ({scores.max():.2f})")
