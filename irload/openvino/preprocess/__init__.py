"""`openvino.preprocess`: steps between tensors of the user and the ports of a model, built into the model."""

from irload.openvino.preprocess.formats import ColorFormat, PaddingMode, ResizeAlgorithm
from irload.openvino.preprocess.info import (
    InputInfo,
    InputModelInfo,
    InputTensorInfo,
    OutputInfo,
    OutputModelInfo,
    OutputTensorInfo,
)
from irload.openvino.preprocess.processor import PrePostProcessor
from irload.openvino.preprocess.steps import PostProcessSteps, PreProcessSteps

__all__ = [
    "ColorFormat",
    "InputInfo",
    "InputModelInfo",
    "InputTensorInfo",
    "OutputInfo",
    "OutputModelInfo",
    "OutputTensorInfo",
    "PaddingMode",
    "PostProcessSteps",
    "PrePostProcessor",
    "PreProcessSteps",
    "ResizeAlgorithm",
]
