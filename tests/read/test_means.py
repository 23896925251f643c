"""Faults of `pre-process`: inputs that it does not fit, channels and means that cannot be read."""

from __future__ import annotations

import pytest

from tests.read.texts import PARAMETER, RELU, RESULT, changed, faults, net

VALUES = "".join(f'<channel id="{k}"><mean value="{k}.5"/></channel>' for k in range(3))
NAMED = f'<pre-process reference-layer-name="in">{VALUES}</pre-process>'
UNNAMED = f"<pre-process>{VALUES}</pre-process>"


@pytest.mark.parametrize(
    ("shape", "fits"), [("1,3", False), ("1,3,2", True), ("1,3,2,2,2", True), ("1,4,2,2", False), ("1,?,2", True)]
)
def test_shapes_of_a_named_input(shape: str, fits: bool) -> None:
    _, errors = faults(changed('"1,3"', f'"{shape}"', net(tail=NAMED)))
    assert bool(errors) != fits
    assert fits or "pre-process has 3 means, but input 'in' is of shape" in errors[0]


@pytest.mark.parametrize(
    ("tail", "said"),
    [(NAMED.replace('"in"', '"nope"'), "pre-process is for the input 'nope'"), (UNNAMED, "for the input of rank 4")],
)
def test_an_input_that_the_model_lacks(tail: str, said: str) -> None:
    _, errors = faults(net(tail=tail))
    assert len(errors) == 1
    assert said in errors[0]


@pytest.mark.parametrize(
    ("old", "new"), [('element_type="f32"', 'element_type="float"'), (PARAMETER[PARAMETER.index("<output>") : -8], "")]
)
@pytest.mark.parametrize("tail", [NAMED, UNNAMED])
def test_a_faulty_input_gets_no_means(old: str, new: str, tail: str) -> None:
    _, errors = faults(changed(old, new, net(PARAMETER + RELU + RESULT, tail=tail)))
    assert "pre-process is for the input" in errors[-1]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('"1.5"', '"x"', "value='x' of <mean> is not a number"),
        ('id="1"', 'id="x"', "id='x' of <channel> is not a non-negative integer"),
        ('value="1.5"', 'offset="0"', "<mean> has no attribute size"),
        ('value="1.5"', 'size="4"', "<mean> has no attribute offset"),
    ],
)
def test_a_faulty_channel_is_skipped(old: str, new: str, said: str) -> None:
    text = changed('"1,3"', '"1,3,2,2"', net(tail=changed(old, new, NAMED)))
    _, errors = faults(text)
    assert len(errors) == 2
    assert said in errors[0]
    assert "pre-process has 2 means" in errors[1]
