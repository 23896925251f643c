"""Rows of rules about weights, hygiene, portability and limits."""

from __future__ import annotations

from irload.safety.limits import Limits
from tests.checks.bases import STEP, edges, i64, layer
from tests.checks.graph_rows import V1, wrong
from tests.checks.table import (
    ASIDE,
    CONV_OUT,
    RELU_OUT,
    RESULT,
    SIX,
    TO_RESULT,
    TWIN,
    TWIN_FED,
    Weights,
    extra,
    floats,
    no,
    put,
    row,
    second_const,
)

SHAPE = 'shape="4,3,3,3" offset="0" size="432"'
THE_RESULT = layer(4, "out", "Result", [SIX], names=["y"])
UNNAMED = (wrong(RESULT, ' output_names="y"', ""), wrong(RELU_OUT, ' names="y"', ""))
DEAD = extra(10, "deeper", "ReLU", [SIX], [SIX])
DEAD_CONST = extra(9, "dead", "Const", [], [("FP32", (2,))], 'element_type="f32" shape="2" offset="432" size="8"')


def through(bits: int) -> tuple[tuple[str, str], ...]:
    """Edits that convert the target sizes of the Reshape to a float type and back."""
    element, wide = f"f{bits}", (f"FP{bits}", (2,))
    return (
        (
            '<layer id="2" name="target"',
            layer(7, "f", "Convert", [i64(2)], [wide], f'destination_type="{element}"')
            + layer(8, "i", "Convert", [wide], [i64(2)], 'destination_type="i64"')
            + '<layer id="2" name="target"',
        ),
        (edges((1, 1, 3, 0)), edges((1, 1, 7, 0), (7, 1, 8, 0), (8, 1, 3, 0))),
    )


def huge(size: int) -> tuple[tuple[str, str], ...]:
    """Edits that give the image `size` rows and columns, and all ports matching dims."""
    inside, outside = f"<dim>{size}</dim><dim>{size}</dim>", f"<dim>{size - 2}</dim><dim>{size - 2}</dim>"
    return (
        ("1,3,8,8", f"1,3,{size},{size}"),
        *((("<dim>8</dim><dim>8</dim>", inside),) * 2),
        *((("<dim>6</dim><dim>6</dim>", outside),) * 4),
    )


def grown(count: int):
    """Weights with extra bytes at the end."""
    return lambda blob: blob + bytes(count)


def both(change: Weights) -> dict[str, Weights]:
    return {"weights": change, "near_weights": change}


WEIGHT_ROWS = [
    row("IR601", "conv", (), (), weights=lambda b: None, alone=True),
    row("IR602", "conv", ('offset="0"', 'offset="100000"'), ()),
    row(
        "IR602", "conv", ('offset="0"', 'offset="201"'), ('offset="0"', 'offset="200"'), **both(grown(200)), alone=True
    ),
    row("IR603", "conv", (SHAPE, SHAPE.replace("432", "400")), ()),
    row("IR604", "conv", (SHAPE, SHAPE.replace("432", "440")), (), weights=grown(8), near_weights=grown(8)),
    row("IR604", "conv", second_const("0", 432, 2), second_const("0", 432, 1), **both(grown(8))),
    row(
        *("IR605", "conv", second_const("2", 428, 8), second_const("2", 432, 8)),
        weights=grown(4),
        near_weights=grown(8),
    ),
    row("IR605", "conv", second_const("2", 8, 8), second_const("4,3,3,3", 0, 432)),
    row("IR605", "conv", second_const("0", 8, 1), second_const("0", 8, 0)),
    row("IR606", "conv", (), (), weights=grown(100), near_weights=grown(60), alone=True),
    row("IR606", "conv", (), (), weights=grown(65), near_weights=grown(64), alone=True),
    row(
        *("IR607", "conv", second_const("2", 497, 8), second_const("2", 496, 8)),
        weights=grown(73),
        near_weights=grown(72),
        alone=True,
    ),
    row(
        *("IR607", "conv", second_const("2", 532, 8), second_const("2", 482, 8)),
        weights=grown(108),
        near_weights=grown(58),
        alone=True,
    ),
    row("IR608", "conv", (), (), weights=put(7, float("nan")), near_weights=put(7, 1e30)),
    row("IR608", "conv", (), (), weights=lambda b: put(7, float("nan"))(put(9, float("inf"))(b) or b)),
    row(
        *("IR608", "conv", second_const("1", 432, 4), second_const("", 432, 4)),
        **both(lambda b: put(-1, float("nan"))(b + bytes(4))),
    ),
    row("IR609", "conv", (), (), weights=put(7, float("inf")), near_weights=put(7, 3e38)),
    row(
        *("IR610", "conv", (), ()),
        weights=floats(lambda values: values.fill(0)),
        near_weights=floats(lambda values: values[1:].fill(0)),
    ),
    row(
        *("IR610", "conv", second_const("16", 432, 64), second_const("15", 432, 60)),
        weights=grown(64),
        near_weights=grown(60),
    ),
    row(
        *("IR611", "conv", second_const("16", 432, 64), second_const("16", 432, 64)),
        weights=lambda b: b"\xff" * 496,
        near_weights=lambda b: b + b"\xff" * 64,
        alone=True,
    ),
    row("IR612", "conv", (), (), weights=lambda b: b[:400], alone=True),
]

HYGIENE_ROWS = [
    row("IR701", "conv", (TWIN, TWIN_FED), ASIDE),
    row("IR701", "conv", (TWIN, DEAD, TWIN_FED, (TO_RESULT, TO_RESULT + edges((9, 1, 10, 0)))), ASIDE),
    row("IR701", "conv", DEAD_CONST, (), weights=grown(8)),
    row(
        *("IR702", "tensor_iterator"),
        (no(layer(4, "end", "Result", [STEP], names=["last"])), no(edges((2, 3, 4, 0)))),
        (),
    ),
    row("IR703", "conv", wrong(CONV_OUT, '"c"', '"y"'), wrong(CONV_OUT, '"c"', '"c,d"')),
    row("IR704", "conv", UNNAMED, UNNAMED[:1]),
    row("IR705", "conv", (V1, '"Gelu" version="opset2"'), (V1, '"Gelu" version="opset7"')),
    row("IR706", "conv", (no(THE_RESULT), no(TO_RESULT)), (), alone=True),
    row("IR707", "reshape", through(32), through(64)),
    row("IR707", "reshape", through(16), ()),
    row("IR708", "conv", extra(9, "p", "Parameter", [], [SIX], 'shape="1,4,6,6" element_type="f32"', names=["p"]), ()),
]

TARGET_ROWS = [
    row(
        *("IR801", "conv", (V1, '"SoftSign" version="opset9"'), (V1, '"SoftSign" version="opset9"')),
        options={"target": "2022.1"},
        near_options={"target": "2022.2"},
        alone=True,
    ),
    row(
        *("IR802", "conv", (), ()),
        options={"target": "2021.4"},
        near_options={"target": "2022.1"},
        alone=True,
    ),
    row("IR902", "conv", huge(200_000), huge(1000)),
    row(
        *("IR902", "conv", (), ()),
        options={"limits": Limits(tensor_bytes=767)},  # the image has 768 bytes
        near_options={"limits": Limits(tensor_bytes=768)},
        alone=True,
    ),
]

FILE_ROWS = [*WEIGHT_ROWS, *HYGIENE_ROWS, *TARGET_ROWS]
