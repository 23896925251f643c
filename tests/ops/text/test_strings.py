"""Operations between texts and numbers, where OpenVINO cannot be the oracle."""

from __future__ import annotations

import numpy as np

from irload.core import element as et
from irload.ops.text.strings import NumericToString


def test_numbers_of_bf16_are_written_with_six_digits() -> None:
    x = np.array([0, -94, 0.0966796875, np.inf, 3e38], et.bf16.dtype)
    assert NumericToString().compute(x).tolist() == ["0", "-94", "0.0966797", "inf", "3.00406e+38"]
