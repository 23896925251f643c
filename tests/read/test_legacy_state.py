"""IR v2 to v7: state, bodies and cells."""

from __future__ import annotations

import numpy as np

import irload
from tests.read.legacy import legacy_net, ports
from tests.read.legacy_layers import weights


def test_state() -> None:
    """Memory: a running sum."""
    text = f"""<net name="m" version="5" batch="1"><layers>
      <layer id="0" name="x" type="Input" precision="FP32"><output>{ports([(1, 3)], 0)}</output></layer>
      <layer id="1" name="r" type="Memory" precision="FP32"><data id="v" index="1" size="2"/>
        <output>{ports([(1, 3)], 0)}</output></layer>
      <layer id="2" name="sum" type="Eltwise" precision="FP32"><data operation="sum"/>
        <input>{ports([(1, 3), (1, 3)], 0)}</input><output>{ports([(1, 3)], 2)}</output></layer>
      <layer id="3" name="w" type="Memory" precision="FP32"><data id="v" index="0" size="2"/>
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


def test_a_body() -> None:
    """TensorIterator: a running sum over the second axis, whose body has neither inputs nor results."""
    text = f"""<net name="m" version="6" batch="1"><layers>
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
    model = irload.read_model(text.encode())
    assert model.warnings == []
    x = weights(1, 4, 2)
    found = irload.compile_model(model, jit=False)([x, np.zeros((1, 1, 2), np.float32)])[0]
    np.testing.assert_allclose(found, x.cumsum(1), rtol=1e-6)


def test_a_cell() -> None:
    """LSTMCell: the weights of input and hidden state are side by side, the gates in the order f, i, c, o."""
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
    found = irload.compile_model(irload.read_model(text, blob), jit=False)([x, h, c])
    np.testing.assert_allclose(found[0], sigmoid(o) * np.tanh(after), rtol=1e-5)
    np.testing.assert_allclose(found[1], after, rtol=1e-5)
