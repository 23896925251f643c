"""Copies of feature maps into zero-padded buffers, for the windows of convolutions."""

from __future__ import annotations

import numpy as np

from irload.core.tensor import Array
from irload.plan.threads import ThreadCalls


def fill_band(band: Array, image: Array, top: int, left: int, part: ThreadCalls) -> None:
    """Append calls to `part` that fill a band [rows, columns, C] from an image, with zeros outside the image.

    Row 0 of the band is row `top` of the image, and column 0 of the image is column `left` of the band.
    """
    height, width, _ = image.shape
    above, begin = max(-top, 0), max(top, 0)
    count = max(min(top + len(band), height) - begin, 0)  # 0 if everything is padding
    across = min(width, band.shape[1] - left)
    for border in (band[:above], band[above + count :], band[:, :left], band[:, left + across :]):
        if border.size:
            part.append((border.fill, (0,)))
    source = image[begin : begin + count, :across]
    part.append((np.copyto, (band[above : above + count, left : left + across], source)))
