"""IR v2 to v7: state, bodies and cells."""

from __future__ import annotations

import numpy as np
import pytest

import irload
from irload.errors import IRError
from tests.read.legacy import legacy_net, ports
from tests.read.legacy_layers import weights


@pytest.mark.parametrize("index", ['index="0"', ""])
def test_state(index: str) -> None:
    """Memory layers that keep a running sum. A layer without an index writes."""
    text = f"""<net name="m" version="5" batch="1"><layers>
      <layer id="0" name="x" type="Input" precision="FP32"><output>{ports([(1, 3)], 0)}</output></layer>
      <layer id="1" name="r" type="Memory" precision="FP32"><data id="v" index="1" size="2"/>
        <output>{ports([(1, 3)], 0)}</output></layer>
      <layer id="2" name="sum" type="Eltwise" precision="FP32"><data operation="sum"/>
        <input>{ports([(1, 3), (1, 3)], 0)}</input><output>{ports([(1, 3)], 2)}</output></layer>
      <layer id="3" name="w" type="Memory" precision="FP32"><data id="v" {index} size="2"/>
        <input>{ports([(1, 3)], 0)}</input></layer>
      <layer id="4" name="out" type="Copy" precision="FP32"><input>{ports([(1, 3)], 0)}</input>
        <output>{ports([(1, 3)], 1)}</output></layer></layers>
      <edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
      <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/>
      <edge from-layer="2" from-port="2" to-layer="3" to-port="0"/>
      <edge from-layer="2" from-port="2" to-layer="4" to-port="0"/></edges></net>"""
    request = irload.compile_model(irload.read_model(text.encode()), jit=False).create_infer_request()
    step = np.array([[1, 2, 3]], np.float32)
    request.infer(step)
    assert request.infer(step)[0].tolist() == [[2, 4, 6]]


def body() -> str:
    """TensorIterator: a running sum over the second axis, whose body has neither inputs nor results."""
    return f"""<net name="m" version="6" batch="1"><layers>
      <layer id="0" name="x" type="Input" precision="FP32"><output>{ports([(1, 4, 2)], 0)}</output></layer>
      <layer id="1" name="start" type="Input" precision="FP32"><output>{ports([(1, 1, 2)], 0)}</output></layer>
      <layer id="2" name="loop" type="TensorIterator" precision="FP32">
        <input>{ports([(1, 4, 2), (1, 1, 2)], 0)}</input><output>{ports([(1, 4, 2)], 2)}</output>
        <port_map>
          <input axis="1" external_port_id="0" internal_layer_id="0" internal_port_id="0"/>
          <input external_port_id="1" internal_layer_id="0" internal_port_id="1"/>
          <output axis="1" external_port_id="2" internal_layer_id="0" internal_port_id="2"/>
        </port_map>
        <back_edges><edge from-layer="0" from-port="2" to-layer="0" to-port="1"/></back_edges>
        <body><layers><layer id="0" name="add" type="Eltwise" precision="FP32"><data operation="sum"/>
          <input>{ports([(1, 1, 2), (1, 1, 2)], 0)}</input><output>{ports([(1, 1, 2)], 2)}</output></layer></layers>
          <edges/></body></layer></layers>
      <edges><edge from-layer="0" from-port="0" to-layer="2" to-port="0"/>
      <edge from-layer="1" from-port="0" to-layer="2" to-port="1"/></edges></net>"""


def test_a_body() -> None:
    model = irload.read_model(body().encode())
    assert model.warnings == []
    x = weights(1, 4, 2)
    output = irload.compile_model(model, jit=False)([x, np.zeros((1, 1, 2), np.float32)])[0]
    np.testing.assert_allclose(output, x.cumsum(1), rtol=1e-6)


def test_a_cell() -> None:
    """LSTMCell: the weights of input and hidden state are concatenated, the gates in the order f, i, c, o."""
    both, biases = weights(8, 5), weights(8)
    text, blob = legacy_net(
        "LSTMCell",
        '<data hidden_size="2"/>',
        [(1, 3), (1, 2), (1, 2)],
        [(1, 2), (1, 2)],
        {"weights": both, "biases": biases},
    )
    x, h, c = weights(1, 3), weights(1, 2), weights(1, 2)
    f, i, g, o = np.split(np.concatenate([x, h], 1) @ both.T + biases, 4, 1)
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    after = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    result = irload.compile_model(irload.read_model(text, blob), jit=False)([x, h, c])
    np.testing.assert_allclose(result[0], sigmoid(o) * np.tanh(after), rtol=1e-5)
    np.testing.assert_allclose(result[1], after, rtol=1e-5)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('external_port_id="1"', 'external_port_id="7"', "names external port 7, which the layer does not have"),
        ('external_port_id="1"', 'external_port_id="-1"', "names external port -1, which the layer does not have"),
        ('internal_port_id="1"', 'internal_port_id="5"', "names input port 5 of layer 0, absent in the body"),
        ('internal_port_id="2"', 'internal_port_id="0"', "names output port 0 of layer 0, absent in the body"),
        ('from-layer="0" from-port="2"', 'from-layer="3" from-port="2"', "names output port 2 of layer 3, absent"),
        ('internal_port_id="1"', 'internal_port_id="x"', "internal_port_id .* must be a non-negative integer, found"),
        ('to-layer="0" to-port="1"', 'to-port="1"', "to-layer .* must be a non-negative integer, found ''"),
    ],
)
def test_faults_of_port_maps(old: str, new: str, said: str) -> None:
    assert old in body()
    with pytest.raises(IRError, match=said) as caught:
        irload.read_model(body().replace(old, new, 1).encode())
    assert caught.value.where is not None
    assert caught.value.where.layer_name == "loop"


@pytest.mark.parametrize(("data", "count"), [("", 3), ('linear_before_reset="0"', 3), ('linear_before_reset="1"', 4)])
def test_a_cell_with_resets(data: str, count: int) -> None:
    """GRUCell: the gates in the order z, r, h; with `linear_before_reset` the hidden state has a separate bias."""
    both, biases = weights(6, 5), weights(2 * count)
    x, h = weights(1, 3), weights(1, 2)
    net = legacy_net(
        "GRUCell", f'<data hidden_size="2" {data}/>', [(1, 3), (1, 2)], [(1, 2)], {"weights": both, "biases": biases}
    )
    sigmoid = lambda v: 1 / (1 + np.exp(-v))  # noqa: E731
    (wz, wr, wh), (rz, rr, rh), b = np.split(both[:, :3], 3), np.split(both[:, 3:], 3), np.split(biases, count)
    z, r = sigmoid(x @ wz.T + h @ rz.T + b[0]), sigmoid(x @ wr.T + h @ rr.T + b[1])
    hidden = r * (h @ rh.T + b[3]) if count == 4 else (r * h) @ rh.T
    output = irload.compile_model(irload.read_model(*net), jit=False)([x, h])[0]
    np.testing.assert_allclose(output, (1 - z) * np.tanh(x @ wh.T + hidden + b[2]) + z * h, rtol=1e-4, atol=1e-6)


def test_a_simple_cell_without_biases() -> None:
    both, x, h = weights(2, 5), weights(1, 3), weights(1, 2)
    net = legacy_net("RNNCell", '<data hidden_size="2"/>', [(1, 3), (1, 2)], [(1, 2)], {"weights": both})
    output = irload.compile_model(irload.read_model(*net), jit=False)([x, h])[0]
    np.testing.assert_allclose(output, np.tanh(np.concatenate([x, h], 1) @ both.T), rtol=1e-5)


def test_outputs_that_pass_through_several_layers() -> None:
    """Two consecutive layers that are the identity; one output that feeds a layer, and one that does not."""
    middle = "".join(
        f'<layer id="{k}" name="copy{k}" type="Copy" precision="FP32"><input>{ports([(1, 3)], 0)}</input>'
        f"<output>{ports([(1, 3)], 1)}</output></layer>"
        for k in (1, 2)
    )
    text = f"""<net name="m" version="6" batch="1"><layers>
      <layer id="0" name="x" type="Input" precision="FP32"><output>{ports([(1, 3)], 0)}</output></layer>{middle}
      <layer id="3" name="cut" type="Split" precision="FP32"><data axis="1"/><input>{ports([(1, 3)], 0)}</input>
        <output>{ports([(1, 1), (1, 2)], 1)}</output></layer>
      <layer id="4" name="two" type="Power" precision="FP32"><data scale="2"/><input>{ports([(1, 2)], 0)}</input>
        <output>{ports([(1, 2)], 1)}</output></layer></layers>
      <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/>
      <edge from-layer="1" from-port="1" to-layer="2" to-port="0"/>
      <edge from-layer="2" from-port="1" to-layer="3" to-port="0"/>
      <edge from-layer="3" from-port="2" to-layer="4" to-port="0"/></edges></net>"""
    result = irload.compile_model(irload.read_model(text.encode()), jit=False)(np.array([[1, 2, 3]], np.float32))
    assert [result[k].tolist() for k in range(len(result))] == [[[1]], [[4, 6]]]
