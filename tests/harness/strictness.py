"""Intended differences between the models that irload and OpenVINO accept: one entry per rule, with the reason."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.harness.case import Case


@dataclass(frozen=True)
class Strictness:
    """A difference and its reason.

    `side`: the verdict of irload (`rejected` or `accepted`; OpenVINO's is the opposite); `types`: the operations
    concerned (none: all); `words`: a pattern that the error message matches, irload's or OpenVINO's; `why`: the
    reason.
    """

    side: str
    types: frozenset[str]
    words: str
    why: str


def _rejected(types: str, words: str, why: str) -> Strictness:
    return Strictness("rejected", frozenset(types.split()), words, why)


def _accepted(types: str, words: str, why: str) -> Strictness:
    return Strictness("accepted", frozenset(types.split()), words, why)


_BROADCASTING = (
    "Add BitwiseAnd BitwiseLeftShift BitwiseOr BitwiseRightShift BitwiseXor Divide Equal FakeQuantize FloorMod Greater "
    "GreaterEqual Less LessEqual LogicalAnd LogicalOr LogicalXor Maximum Minimum Mod Multiply NotEqual Power Select "
    "SquaredDifference Subtract Xor "
)
_RECURRENT = "GRUCell GRUSequence LSTMCell LSTMSequence RNNCell RNNSequence "
_DETECTRON = (
    "ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage "
    "ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs "
)
_REGIONS = (
    "DeformablePSROIPooling DetectionOutput GenerateProposals MatrixNms MulticlassNms PSROIPooling PriorBox "
    "PriorBoxClustered Proposal ROIAlign ROIAlignRotated ROIPooling RegionYolo ReorgYolo "
)
_WINDOWS = (
    "AvgPool BinaryConvolution Col2Im Convolution ConvolutionBackpropData DeformableConvolution ExtractImagePatches "
    "GroupConvolution GroupConvolutionBackpropData MaxPool "
)
_REDUCTIONS = "ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd ReduceSum "
_TEXT = (
    "ByteFallback CharsToBytes CombineSegments ContribStringJoin FuzeRagged RaggedToDense RaggedToRagged "
    "SentencepieceDetokenizer SentencepieceStreamDetokenizer TrieTokenizer Truncate UTF8Validate UnigramTokenizer "
    "VocabDecoder VocabEncoder WordpieceTokenizer "
)

STRICTNESS: tuple[Strictness, ...] = (
    # -- accepted by OpenVINO, rejected by irload
    _rejected(
        "BatchToSpace SpaceToBatch",
        "the first value of",
        "block sizes, pads or crops of the batch: the specification requires 1 and 0, which OpenVINO does not check",
    ),
    _rejected(
        "If Loop TensorIterator",
        "",
        "OpenVINO does not check bodies against the inputs of the layer: parts that do not divide an axis, lengths "
        "that differ, and types that operations of the body cannot combine cause errors of kernels; of a condition it "
        "reads one byte",
    ),
    _rejected(
        _BROADCASTING + "Broadcast DeformablePSROIPooling GRUSequence Interpolate LSTMSequence Proposal RNNSequence",
        "is not one of",
        "words that the specification does not list; OpenVINO accepts any word, or words of other operations",
    ),
    _rejected(
        _TEXT,
        "takes (one|[0-9])|element types must agree|must be of type (i32|boolean)|dimension cannot be|out of range",
        "the tokenizer extension infers without these checks; its kernels fail, or read beyond the inputs",
    ),
    _rejected(
        "CharsMapNormalization NormalizeUnicode",
        "attribute normalization_form",
        "the tokenizer extension reads the attribute only at run time",
    ),
    _rejected(
        _BROADCASTING,
        "auto_broadcast pdpd",
        "with pdpd only b is broadcast; OpenVINO also broadcasts an axis of a to an empty axis of b",
    ),
    _rejected(
        "Einsum Interpolate PriorBoxClustered",
        "attribute (equation|mode|axes|width|height) is missing",
        "attributes that the specification requires and that have no meaningful default",
    ),
    _rejected(
        _BROADCASTING
        + _RECURRENT
        + _DETECTRON
        + _REGIONS
        + _WINDOWS
        + "CTCGreedyDecoderSeqLen Elu Eye GroupNormalization Interpolate LRN MVN Multinomial NormalizeL2 RandomUniform "
        "Range",
        "AttributeInvalid: .*must (be positive|not be negative|be at least|be within|be finite|be a number|be a numeric"
        "|be one of i32, i64|be i32 or i64)",
        "attributes outside the range of the specification, which OpenVINO does not check",
    ),
    _rejected(
        _DETECTRON + "Col2Im GRUSequence Interpolate LSTMSequence PriorBox PriorBoxClustered ROIPooling RNNSequence "
        "ReorgYolo",
        "AttributeInvalid: .*(must (have|hold|be) (one|two|four|three|1|2|3)\\b|pyramid_scales has|density must have)",
        "lists of a length that the specification does not allow; OpenVINO reads the first items, or out of bounds",
    ),
    _rejected(
        _REDUCTIONS
        + _RECURRENT
        + "AdaptiveAvgPool AdaptiveMaxPool AvgPool BinaryConvolution BitwiseNot Broadcast Bucketize CTCGreedyDecoder "
        "CTCGreedyDecoderSeqLen CTCLoss Clamp Convert ConvertLike CumSum DeformableConvolution DeformablePSROIPooling "
        "DetectionOutput Elu EmbeddingBagOffsets EmbeddingBagOffsetsSum EmbeddingBagPacked EmbeddingBagPackedSum "
        "EmbeddingSegmentsSum FakeQuantize GRN Gather GatherElements GatherND GenerateProposals GridSample "
        "GroupNormalization HSigmoid HSwish Interpolate LRN LogSoftmax MVN MaxPool Multinomial NMSRotated "
        "NonMaxSuppression NonZero NormalizeL2 OneHot PReLU PSROIPooling Pad PriorBox PriorBoxClustered Proposal "
        "ROIAlign ROIAlignRotated Range Reshape Reverse ReverseSequence Round ScatterElementsUpdate ScatterUpdate "
        "SegmentMax Slice SliceScatter SoftMax SpaceToBatch Split SparseFillEmptyRows Squeeze StridedSlice Tile TopK "
        "Transpose Unique Unsqueeze VariadicSplit",
        "TypeMismatch",
        "element types that the specification does not list, or that must agree; OpenVINO does not check "
        "them, and fails later or converts without a warning",
    ),
    _rejected(
        _REDUCTIONS
        + "Broadcast CumSum Gather Interpolate LRN MVN NormalizeL2 RegionYolo Reverse Roll ScatterElementsUpdate "
        "ScatterUpdate SliceScatter Split Squeeze StridedSlice TopK Unsqueeze VariadicSplit",
        "is out of range|must be increasing within|must be in|must be distinct|more than the rank|describes \\d+ axes"
        "|has no axis",
        "axes that the data do not have; OpenVINO wraps unsigned axes to negative ones, or fails at run time",
    ),
    _rejected(
        _WINDOWS
        + "AdaptiveAvgPool AdaptiveMaxPool BatchToSpace Broadcast DFT Eye IDFT IRDFT ISTFT Interpolate Multinomial Pad "
        "RDFT RandomUniform Reshape STFT SegmentMax Slice SpaceToBatch SparseFillEmptyRows TopK VariadicSplit",
        "ShapeMismatch: .*(must not (be negative|be zero|be empty|hold negative|exceed)|must be positive"
        "|values of at least|positive sizes|cannot draw|crop more than|do not add up|is empty and cannot"
        "|has no pixel|has \\d+ elements, shape|axes must name)",
        "impossible sizes and counts; OpenVINO does not check them, and fails or returns wrong results",
    ),
    _rejected(
        _RECURRENT,
        "input_size differs",
        "sizes of inputs that contradict each other; OpenVINO lacks weights for some of them at run time",
    ),
    _rejected(
        "DetectionOutput DeformablePSROIPooling ExperimentalDetectronGenerateProposalsSingleImage "
        "ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor PriorBox PriorBoxClustered "
        "Proposal RegionYolo ReorgYolo",
        "ShapeMismatch: .*(must have|must agree|must hold|cells along)",
        "shapes that contradict each other or the attributes; OpenVINO reads out of bounds, or wrong elements",
    ),
    _rejected(
        "FakeQuantize PReLU Selu",
        "does not broadcast to|cannot broadcast|must hold one value",
        "bounds, slopes and factors that do not broadcast to the data; OpenVINO does not compare the shapes",
    ),
    _rejected(
        "AdaptiveAvgPool AdaptiveMaxPool Broadcast GroupedMatMul ISTFT Interpolate Pad STFT ScatterNDUpdate "
        "SpaceToBatch",
        "ShapeMismatch: .*(must have|must be|resizes exactly|takes data of rank|takes the input|has fewer axes"
        "|axes to resize)",
        "secondary inputs of a shape that the specification does not allow; OpenVINO reads only their values",
    ),
    _rejected("GridSample", "has no pixel", "an empty image has no elements to reflect"),
    _rejected(
        "ScaledDotProductAttention",
        "does not broadcast|must broadcast|must be a scalar|takes 3 to 6 inputs",
        "masks and sinks that would broadcast the scores, and inputs that the operation does not have",
    ),
    # -- rejected by OpenVINO, accepted by irload
    _accepted(
        "If",
        "number of values in the If condition constant",
        "irload uses the first of several elements; OpenVINO accepts several only if their values are unknown",
    ),
    _accepted(
        "CumSum",
        "index '1' out of range",
        "axis is optional by the specification; OpenVINO's check fails without it",
    ),
    _accepted(
        "GRUCell LSTMCell RNNCell",
        "_M_range_check",
        "an empty list of activations stands for the default; OpenVINO reads its first item",
    ),
    _accepted(
        " ".join(_REDUCTIONS.split()),
        "Accessing out-of-range dimension",
        "axes 0 and -1 of a scalar are also valid with keep_dims; only then OpenVINO rejects them",
    ),
    _accepted(
        "DeformableConvolution",
        "[Dd]eformable group|group",
        "group and deformable_group are 1 by default in the specification; OpenVINO uses 0 if they are missing",
    ),
    _accepted(
        "Broadcast",
        "axes_mapping|Broadcast axes",
        "axes_mapping has no effect in mode numpy, the default; OpenVINO checks it if mode is missing",
    ),
)


def reason(case: Case, side: str, words: str) -> str | None:
    """Why irload may decide `side` (`rejected` or `accepted`) against OpenVINO; None without an entry."""
    for entry in STRICTNESS:
        if entry.side == side and (not entry.types or case.type in entry.types) and re.search(entry.words, words):
            return entry.why
    return None
