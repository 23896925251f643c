"""`openvino.passes`: passes on models, and patterns that they rewrite."""

from irload.openvino.passes.matching import Matcher
from irload.openvino.passes.patterns import AnyInput, Optional, Or, WrapType
from irload.openvino.passes.predicates import (
    Predicate,
    attrs_match,
    consumers_count,
    has_static_dim,
    has_static_dims,
    has_static_rank,
    has_static_shape,
    rank_equals,
    rank_more_than,
    shape_matches,
    type_matches,
    type_matches_any,
)
from irload.openvino.passes.rewriting import (
    BackwardGraphRewrite,
    GraphRewrite,
    Manager,
    MatcherPass,
    ModelPass,
    PassBase,
)
from irload.openvino.passes.transformations import (
    ConstantFolding,
    ConvertFP32ToFP16,
    LowLatency2,
    MakeStateful,
    Serialize,
    Version,
    VisualizeTree,
)

__all__ = [
    "AnyInput",
    "BackwardGraphRewrite",
    "ConstantFolding",
    "ConvertFP32ToFP16",
    "GraphRewrite",
    "LowLatency2",
    "MakeStateful",
    "Manager",
    "Matcher",
    "MatcherPass",
    "ModelPass",
    "Optional",
    "Or",
    "PassBase",
    "Predicate",
    "Serialize",
    "Version",
    "VisualizeTree",
    "WrapType",
    "attrs_match",
    "consumers_count",
    "has_static_dim",
    "has_static_dims",
    "has_static_rank",
    "has_static_shape",
    "rank_equals",
    "rank_more_than",
    "shape_matches",
    "type_matches",
    "type_matches_any",
]
