"""Classes of texts from logits: labels and activations as config.json states them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from irload.core.tensor import Array
from irload.text.folder import Folder


@dataclass(frozen=True, slots=True)
class Classes:
    """`labels`: one per logit; `activation`: softmax, sigmoid (a single logit, or several labels per text) or none."""

    labels: tuple[str, ...]
    activation: str

    @staticmethod
    def of(folder: Folder, count: int) -> Classes:
        """The classes of a folder, for `count` logits. Classes without a label are named LABEL_0, LABEL_1 and so on."""
        problem = folder.config.get("problem_type")
        names = folder.config.get("id2label")
        named = cast(Mapping[str, Any], names) if isinstance(names, dict) else {}
        labels = tuple(str(named.get(str(k), f"LABEL_{k}")) for k in range(count))
        if problem == "regression":
            return Classes(labels, "none")
        return Classes(labels, "sigmoid" if count == 1 or problem == "multi_label_classification" else "softmax")

    def scores(self, logits: Array) -> Array:
        """The scores f32 [texts, classes] of logits [texts, classes]."""
        wide = logits.astype(np.float64)
        if self.activation == "softmax":
            powers = np.exp(wide - wide.max(-1, keepdims=True))
            wide = powers / powers.sum(-1, keepdims=True)
        elif self.activation == "sigmoid":
            wide = np.exp(-np.logaddexp(0, -wide))
        return wide.astype(np.float32)
