"""Well-known architectures as torch modules with random weights, for peers that cannot load OpenVINO IR."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from benchmarks.peers.bert import bert_base
from benchmarks.peers.mobilenet import mobilenet_v2
from benchmarks.peers.resnet import resnet50
from benchmarks.peers.vgg import vgg11

ARCHITECTURES: dict[str, tuple[Callable[[], torch.nn.Module], tuple[int, ...]]] = {
    "resnet50": (resnet50, (1, 3, 224, 224)),
    "mobilenet_v2": (mobilenet_v2, (1, 3, 224, 224)),
    "vgg11": (vgg11, (1, 3, 224, 224)),
    "bert_base": (bert_base, (1, 64)),
}
"""Name → (function that builds the module, shape of its input)."""


def build(name: str) -> tuple[torch.nn.Module, Any]:
    """Return the module, whose random weights are the same at every call, and an input."""
    make, shape = ARCHITECTURES[name]
    torch.manual_seed(0)
    module = make().eval()
    for part in module.modules():  # as after training; means of 0 and variances of 1 would be folded away
        if isinstance(part, torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(part.running_mean, -0.1, 0.1)
            torch.nn.init.uniform_(part.running_var, 0.8, 1.2)
            torch.nn.init.uniform_(part.weight, 0.5, 1.0)
    example = torch.randint(0, 1000, shape) if len(shape) == 2 else torch.randn(shape)
    return module, example
