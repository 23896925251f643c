"""Elementwise operations and FakeQuantize."""

from __future__ import annotations

import numpy as np

from tests.plan.lowering.nodes import Build, of, power, with_constant

CASES: dict[str, tuple[Build, list[str]]] = {
    **{
        type: (of(type, 3, 4, version=version), ["tiles"])
        for type, version in {
            **dict.fromkeys(("ReLU", "Sigmoid", "Exp", "Tanh", "Negative", "Abs", "Sin", "Cos", "Floor"), "opset1"),
            **dict.fromkeys(("Ceiling", "Erf"), "opset1"),
            **dict.fromkeys(("HSwish", "Mish", "SoftPlus", "Swish"), "opset4"),
            "HSigmoid": "opset5",
        }.items()
    },
    "Log": (lambda net: net.op("Log", net.op("Exp", net.input(3, 4))), ["tiles"]),
    "Sqrt": (lambda net: net.op("Sqrt", net.op("Exp", net.input(3, 4))), ["tiles"]),
    "SquaredDifference": (lambda net: net.op("SquaredDifference", net.input(3, 4), net.input(4)), ["tiles"]),
    "Divide": (lambda net: net.op("Divide", net.input(3, 4), net.op("Exp", net.input(4))), ["tiles", "tiles"]),
    "Minimum": (lambda net: net.op("Minimum", net.input(3, 4), net.input(3, 1)), ["tiles"]),
    "Add by one axis": (
        lambda net: net.op("Add", net.input(2, 3, 4), net.input(3, 1), auto_broadcast="numpy"),
        ["tiles"],
    ),
    "Add, pdpd": (lambda net: net.op("Add", net.input(2, 3, 4), net.input(2), auto_broadcast="pdpd"), ["compute"]),
    "SquaredDifference, pdpd": (
        lambda net: net.op("SquaredDifference", net.input(2, 3, 4), net.input(2), auto_broadcast="pdpd"),
        ["compute"],
    ),
    "Power, pdpd": (
        lambda net: net.op("Power", net.input(2, 3, 4), net.constant(np.float32([1, 2])), auto_broadcast="pdpd"),
        ["compute"],
    ),
    "Power 2": (power(2), ["tiles"]),
    "Power 0.5": (power(0.5), ["tiles"]),
    "Power 1.5": (power(1.5), ["tiles"]),
    "Power 2 of a wider shape": (power(2, (1, 1, 1)), ["tiles", "tiles"]),
    "Power of each": (power(2.5, (3,)), ["tiles"]),
    "Power computed": (lambda net: net.op("Power", net.op("Exp", net.input(3, 4)), net.input(4)), ["tiles"]),
    "Clamp": (of("Clamp", 3, 4, min=-0.5, max=0.25), ["tiles"]),
    "Elu": (of("Elu", 3, 4, alpha=0.7), ["tiles"]),
    "Selu": (
        lambda net: net.op("Selu", net.input(3, 4), net.constant(np.float32([1.7])), net.constant(np.float32([1.1]))),
        ["tiles"],
    ),
    "Selu, alpha computed": (
        lambda net: net.op("Selu", net.input(3, 4), net.input(1), net.constant(np.float32([1.1]))),
        ["compute"],
    ),
    "SoftSign": (of("SoftSign", 3, 4, version="opset9"), ["tiles"]),
    "Round": (of("Round", 3, 4, version="opset5"), ["tiles"]),
    "Round away from zero": (of("Round", 3, 4, version="opset5", mode="half_away_from_zero"), ["compute"]),
    "Gelu": (of("Gelu", 3, 4, version="opset7"), ["tiles"]),
    "Gelu, tanh": (of("Gelu", 3, 4, version="opset7", approximation_mode="tanh"), ["tiles"]),
    "Gelu of opset2": (of("Gelu", 3, 4, version="opset2"), ["tiles"]),
    "Swish, slope": (with_constant("Swish", (3, 4), np.float32(1.5), version="opset4"), ["tiles"]),
    "Swish, slope 2": (with_constant("Swish", (3, 4), np.float32(2), version="opset4"), ["tiles"]),
    "Swish, slope 1": (with_constant("Swish", (3, 4), np.float32(1), version="opset4"), ["tiles"]),
    "HardSigmoid": (
        lambda net: net.op(
            "HardSigmoid", net.input(3, 4), net.constant(np.float32(0.3)), net.constant(np.float32(0.4))
        ),
        ["tiles"],
    ),
    "PReLU": (with_constant("PReLU", (2, 3, 4), np.float32([0.1, 0.5, 1])), ["tiles"]),
    "PReLU of the last axis": (with_constant("PReLU", (2, 3, 4), np.float32([[0.1, 0.5, 1, 0.2]])), ["tiles"]),
    "PReLU of one slope": (with_constant("PReLU", (2, 3, 4), np.float32([0.25])), ["tiles"]),
    "PReLU of one axis": (with_constant("PReLU", (4,), np.float32([0.1, 0.2, 0.3, 0.4])), ["tiles"]),
    "PReLU of a scalar": (with_constant("PReLU", (), np.float32([0.25])), ["tiles"]),
    "PReLU, slopes of higher rank": (with_constant("PReLU", (3,), np.float32([[0.1, 0.5, 1]])), ["tiles"]),
    "PReLU, slope 0": (with_constant("PReLU", (2, 3, 4), np.float32([0.1, 0, 1])), ["tiles"]),
    "PReLU, slopes of any size": (with_constant("PReLU", (2, 3, 4), np.float32([0.1, 0.5, -1.5])), ["tiles"]),
    "PReLU, slope infinite": (with_constant("PReLU", (2, 3, 4), np.float32([0.1, np.inf, 1])), ["compute"]),
    "PReLU, slope computed": (lambda net: net.op("PReLU", net.input(2, 3), net.input(3)), ["compute"]),
}
