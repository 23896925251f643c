"""Deviations of the layers of networks: convolution, pooling, normalization, recurrence, images, detection."""

from __future__ import annotations

from tests.harness.deviation import Deviation

LAYERS: tuple[Deviation, ...] = (
    Deviation(
        ("ConvolutionBackpropData", "GroupConvolutionBackpropData"),
        "specification",
        "says that output_shape makes the pads be ignored and lost elements be split for every auto_pad; the runtime "
        "splits for same_upper and same_lower only, and irload does as the runtime, on which exported models rely",
    ),
    Deviation(
        ("ConvolutionBackpropData", "GroupConvolutionBackpropData"),
        "shape inference",
        "gives rank 2 for an output_shape of unknown length; irload takes the rank of the data",
    ),
    Deviation(
        ("ConvolutionBackpropData", "GroupConvolutionBackpropData"),
        "CPU plugin",
        "fails for an output_shape that comes at run time, and GroupConvolutionBackpropData for one group; irload "
        "computes both",
    ),
    Deviation(
        ("NonMaxSuppression",),
        "shape inference of versions 1 to 4",
        "a fixed number of rows (filled up with -1 by the specification, for one batch only in versions 1 and 3), "
        "while the CPU plugin returns just the selected ones; irload returns those too and infers an upper bound",
    ),
    Deviation(
        ("NonMaxSuppression",),
        "CPU plugin",
        "suppresses at iou = iou_threshold, where the specification says above it; so with the default of 0 it keeps "
        "one box a class. Leaves the number of rows uninitialized when max_output_boxes_per_class is 0",
    ),
    Deviation(
        ("Interpolate",),
        "reference",
        "takes the scales of the wrong axes for linear_onnx over the three spatial axes of rank 5 when the depth "
        "stays; its f32 coefficients for cube_coeff -0.6 do not sum to 1, which moves integers of axes that stay; "
        "crashes on empty outputs of the Pillow modes",
    ),
    Deviation(
        ("Interpolate",),
        "CPU plugin",
        "of version 1, confuses pads and run-time sizes unless axes are 2,3 and resizes spatial axes only; rounds "
        "integers in linear_onnx, where the reference truncates; ignores antialias in mode linear",
    ),
    Deviation(
        ("Interpolate",),
        "CPU plugin",
        "of version 1, enlarges axes that are not resized by their pads, beyond the shape that the runtime itself "
        "infers; irload keeps them, by the specification: “The shape of the output matches input data shape except "
        "spatial dimensions mentioned in axes attribute”",
    ),
    Deviation(
        ("Interpolate",),
        "CPU plugin",
        "in the Pillow modes, leaves output uninitialized when other axes than the last two, or three axes, are "
        "resized, and takes cube_coeff for -0.5; irload resizes up to two axes anywhere. The reference takes exactly "
        "two, and mixes them up when they are not in rising order",
    ),
    Deviation(
        ("NormalizeL2",),
        "CPU plugin",
        "with no axes, gives the sign, x / √x², unless the axes are constant and the rank is 2 to 4; by the "
        "specification “each input element is divided by itself resulting value 1 for all non-zero elements”, "
        "as there and in irload",
    ),
    Deviation(
        ("LSTMCell",),
        "CPU plugin",
        "of version 1, reads input_forget and the peepholes and makes nothing of them; the specification speaks of "
        "neither, and irload does as the runtime",
    ),
    Deviation(
        ("RNNSequence", "GRUSequence", "LSTMSequence"),
        "CPU plugin",
        "ignores sequence_lengths in models whose batch or length is dynamic; by the specification it “specifies real "
        "sequence lengths for each batch element”, also in irload",
    ),
    Deviation(
        ("FakeQuantize",),
        "CPU plugin",
        "in f16 fails without broadcasting and gives output_low for some bounds per channel; no reference kernel",
    ),
    Deviation(
        ("FakeConvert",),
        "reference",
        "rounds through f16 and truncates subnormals; irload rounds once to the nearest, as the CPU plugin does",
    ),
    Deviation(
        ("FakeQuantize",),
        "shape inference",
        "takes levels below 2, no levels, bounds larger than the data and integers; the specification allows none",
    ),
    Deviation(
        ("EmbeddingBagOffsetsSum", "EmbeddingBagOffsets"),
        "reference",
        "refuses an empty bag behind the last index; the specification allows offsets up to the number of indices",
    ),
    Deviation(
        ("EmbeddingSegmentsSum",), "CPU plugin", "reads row −1 of the table for default_index −1; irload gives zeros"
    ),
    Deviation(
        ("GroupedMatMul",),
        "both",
        "have no kernel; irload's results are compared with products computed group by group",
    ),
    Deviation(("LRN",), "CPU plugin", "truncates bias to an integer; irload keeps it, as the specification says"),
    Deviation(
        ("AvgPool", "MaxPool"),
        "CPU plugin and reference",
        "crash or read uninitialised dilations where AvgPool-16, MaxPool-8 and MaxPool-14 leave them to their default; "
        "irload reads ones, the default of the specification",
    ),
    Deviation(
        ("AvgPool",),
        "CPU plugin",
        "divides by zero for a window without any element of the input, which rounding_type ceil can add; irload gives "
        "zero, as the reference kernel",
    ),
    Deviation(
        ("AvgPool",),
        "reference",
        "truncates the mean of integers wider than 8 bits; irload rounds all of them half to even, as the CPU plugin",
    ),
    Deviation(
        ("MatrixNms",),
        "reference and CPU plugin",
        "with sort_result_type classid each image's rows stay sorted by score unless sort_result_across_batch is true; "
        "by the specification, and in irload, they are sorted by class",
    ),
    Deviation(
        ("MatrixNms", "MulticlassNms"),
        "CPU plugin",
        "leaves the third output uninitialized when no box at all is selected, and crashes when all classes are the "
        "background class; irload returns zeros",
    ),
    Deviation(
        ("Convolution", "GroupConvolution"),
        "CPU plugin",
        "computes something else for i8 over three spatial axes, and crashes on 8-bit data where a window sees nothing "
        "but padding; irload convolves",
    ),
    Deviation(
        ("GridSample",),
        "CPU plugin",
        "computes u8 in f32 and rounds modes bilinear and bicubic, where the reference's source truncates integers",
    ),
    Deviation(
        ("BinaryConvolution",),
        "CPU plugin",
        "reads numeric data as packed bits unless it comes from a FakeQuantize; irload compares the numbers",
    ),
    Deviation(
        ("AvgPool", "MaxPool"),
        "shape inference",
        "of ceil_torch counts one window too many as the least for a dim that may be 0, when there is padding at the "
        "end; irload bounds it rightly",
    ),
    Deviation(
        ("LRN",),
        "specification",
        "writes size / 2 elements on either side; reference and CPU plugin take (size - 1) // 2, which differs for "
        "even sizes, and so does irload",
    ),
    Deviation(
        ("RNNSequence", "GRUSequence", "LSTMSequence"),
        "CPU plugin",
        "reads absent activations as an empty list and fails on it; irload takes the specification's defaults",
    ),
    Deviation(
        ("CTCLoss",),
        "CPU plugin",
        "crashes on an empty labelling and on an impossible one; irload counts the path of blanks, and infinity",
    ),
    Deviation(
        ("ScaledDotProductAttention",),
        "shape inference",
        "lets attention_mask stretch a source of one key; nothing can compute that, and irload refuses it",
    ),
    Deviation(
        ("PriorBox",),
        "CPU plugin",
        "halves odd fixed_size exactly where the reference halves whole numbers; takes no run-time sizes in opset8",
    ),
    Deviation(
        ("PriorBox",),
        "specification",
        "says that max_size is ignored unless scale_all_sizes; the runtime makes its boxes, and so does irload. Where "
        "the attributes make more boxes a cell than are counted (so, or with several fixed_ratio), the runtime writes "
        "them one after the other until the output is full, and so does irload",
    ),
    Deviation(
        ("PriorBox",),
        "reference and CPU plugin",
        "leave the end of the output uninitialized where the attributes make fewer boxes a cell than are counted "
        "(density without fixed_size); irload refuses to compute it",
    ),
    Deviation(("PriorBox", "PriorBoxClustered"), "Model.evaluate", "crashes, so the CPU plugin is the oracle"),
    Deviation(("ROIAlignRotated",), "CPU plugin", "corrupts its memory on f16 and bf16; irload computes them in f32"),
    Deviation(("Proposal",), "CPU plugin", "crashes below 8 candidates (pre_nms_topn, or all there are)"),
    Deviation(
        ("Proposal",),
        "reference",
        "cuts and normalizes the first coordinate by the width with framework tensorflow too, although y is first "
        "then; the CPU plugin and irload use the height",
    ),
    Deviation(
        ("Proposal", "ExperimentalDetectronGenerateProposalsSingleImage"),
        "reference and CPU plugin",
        "give regions smaller than min_size the score 0 and return them after the others, in the order that an "
        "unstable sort (std::partial_sort) of equal scores leaves, of which no specification speaks (Proposal-4: "
        "“Filters out boxes with size less than min_size”); irload returns them too, in the order of the anchors",
    ),
    Deviation(
        ("DetectionOutput",),
        "reference and CPU plugin",
        "divide priors that a first stage refined by the size of the image a second time unless normalized",
    ),
)
