"""rapidocr-openvino: detection, direction and recognition of two lines of text."""

import numpy as np
from PIL import Image, ImageDraw, ImageFont
from rapidocr_openvino import RapidOCR

LINES = "Invoice 2048", "Total: 17.50 EUR"


def outputs(folder):
    page = Image.new("RGB", (420, 160), "white")
    for k, line in enumerate(LINES):
        ImageDraw.Draw(page).text((20, 20 + 70 * k), line, fill=(20, 20, 60), font=ImageFont.load_default(32))
    detector, direction, recognizer = (
        str(next(folder.glob(pattern))) for pattern in ("*_det_*.xml", "*_cls_*.xml", "*_rec_*.xml")
    )
    ocr = RapidOCR(det_model_path=detector, cls_model_path=direction, rec_model_path=recognizer)
    results, _ = ocr(np.array(page))
    return {
        "boxes": np.array([box for box, _, _ in results]),
        "texts": np.array([text for _, text, _ in results]),
        "scores": np.array([float(score) for _, _, score in results]),
    }
