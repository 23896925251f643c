"""ResNet-50 v1.5: bottlenecks with the stride in the 3×3 convolution."""

from __future__ import annotations

from torch import Tensor, nn


def conv(inputs: int, outputs: int, kernel: int, stride: int = 1) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, bias=False), nn.BatchNorm2d(outputs))


class Bottleneck(nn.Module):
    def __init__(self, inputs: int, width: int, stride: int) -> None:
        super().__init__()
        self.reduce = conv(inputs, width, 1)
        self.spatial = conv(width, width, 3, stride)
        self.expand = conv(width, 4 * width, 1)
        self.shortcut = nn.Identity() if inputs == 4 * width and stride == 1 else conv(inputs, 4 * width, 1, stride)

    def forward(self, x: Tensor) -> Tensor:
        y = self.spatial(self.reduce(x).relu()).relu()
        return (self.expand(y) + self.shortcut(x)).relu()


def resnet50() -> nn.Module:
    blocks: list[nn.Module] = []
    inputs = 64
    for width, count in ((64, 3), (128, 4), (256, 6), (512, 3)):
        for k in range(count):
            blocks.append(Bottleneck(inputs, width, 2 if k == 0 and width > 64 else 1))
            inputs = 4 * width
    stem = [conv(3, 64, 7, 2), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))
