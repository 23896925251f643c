"""Trains models/digits: a small convolutional classifier of handwritten digits, in plain NumPy, and saves it as IR.

    python models/make_digits.py

The data are the 1,797 digits that scikit-learn bundles (8 × 8 pixels of 0 to 16); 360 of them are held out.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits

from ir import Graph, Ref, save, save_example

HERE = Path(__file__).parent / "digits"
SEED = 7
HELD_OUT = 360
EPOCHS = 40
BATCH = 32
RATE = 2e-3

Array = np.ndarray
Weights = dict[str, Array]


def data() -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """(images, digits) to train on and held out. Images are f32[N,1,8,8], pixels 0 to 16."""
    bunch = load_digits()
    order = np.random.default_rng(SEED).permutation(len(bunch.target))
    images = bunch.images.astype(np.float32)[order, None]
    digits = bunch.target[order]
    return (images[HELD_OUT:], digits[HELD_OUT:]), (images[:HELD_OUT], digits[:HELD_OUT])


def initial(rng: np.random.Generator) -> Weights:
    def he(*shape: int) -> Array:
        return (rng.standard_normal(shape) * np.sqrt(2 / np.prod(shape[1:]))).astype(np.float32)

    zeros = {f"b{k}": np.zeros(n, np.float32) for k, n in enumerate((16, 32, 10))}
    return {"w0": he(16, 1, 3, 3), "w1": he(32, 16, 3, 3), "w2": he(10, 128), **zeros}


# -- layers: each forward returns the values that its backward needs --------------------------------------------------


def windows(x: Array) -> Array:
    """Return every 3 × 3 window of x padded by one: [N,C,H,W] → [N,H,W,C,3,3]."""
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    return np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3)).transpose(0, 2, 3, 1, 4, 5)


def convolve(x: Array, w: Array, b: Array) -> Array:
    return np.tensordot(windows(x), w, ((3, 4, 5), (1, 2, 3))).transpose(0, 3, 1, 2) + b[:, None, None]


def convolve_back(x: Array, w: Array, gradient: Array) -> tuple[Array, Array, Array]:
    """Return gradients of the input, the weights and the bias."""
    dw = np.tensordot(gradient, windows(x), ((0, 2, 3), (0, 1, 2)))
    flipped = w[:, :, ::-1, ::-1].transpose(1, 0, 2, 3)
    dx = convolve(gradient, flipped, np.zeros(w.shape[1], np.float32))
    return dx, dw, gradient.sum((0, 2, 3))


def pool(x: Array) -> Array:
    """Return the maximum of each 2 × 2 block."""
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).max((3, 5))


def pool_back(x: Array, y: Array, gradient: Array) -> Array:
    """Return the gradient, which goes to the maximum; ties share it."""
    wide = np.repeat(np.repeat(y, 2, 2), 2, 3) == x
    share = pool_sum(wide)
    return np.repeat(np.repeat(gradient / share, 2, 2), 2, 3) * wide


def pool_sum(x: Array) -> Array:
    n, c, h, w = x.shape
    return x.reshape(n, c, h // 2, 2, w // 2, 2).sum((3, 5))


def softmax(z: Array) -> Array:
    e = np.exp(z - z.max(1, keepdims=True))
    return e / e.sum(1, keepdims=True)


def forward(p: Weights, images: Array) -> dict[str, Array]:
    """Return every intermediate value; `probabilities` is the result."""
    v = {"x0": images / np.float32(16)}
    for k in (0, 1):
        v[f"c{k}"] = np.maximum(convolve(v[f"x{k}"], p[f"w{k}"], p[f"b{k}"]), 0)
        v[f"x{k + 1}"] = pool(v[f"c{k}"])
    v["flat"] = v["x2"].reshape(len(images), -1)
    v["probabilities"] = softmax(v["flat"] @ p["w2"].T + p["b2"])
    return v


def gradients(p: Weights, images: Array, digits: Array) -> Weights:
    v = forward(p, images)
    z = (v["probabilities"] - np.eye(10, dtype=np.float32)[digits]) / len(images)
    g = {"w2": z.T @ v["flat"], "b2": z.sum(0)}
    up = (z @ p["w2"]).reshape(v["x2"].shape)
    for k in (1, 0):
        up = pool_back(v[f"c{k}"], v[f"x{k + 1}"], up) * (v[f"c{k}"] > 0)
        up, g[f"w{k}"], g[f"b{k}"] = convolve_back(v[f"x{k}"], p[f"w{k}"], up)
    return g


def train(images: Array, digits: Array) -> Weights:
    """Adam, with a learning rate that decreases to zero."""
    rng = np.random.default_rng(SEED)
    p = initial(rng)
    first = {k: np.zeros_like(w) for k, w in p.items()}
    second = {k: np.zeros_like(w) for k, w in p.items()}
    steps = EPOCHS * (len(images) // BATCH)
    for step in range(1, steps + 1):
        chosen = rng.integers(0, len(images), BATCH)
        for k, g in gradients(p, images[chosen], digits[chosen]).items():
            first[k] = 0.9 * first[k] + 0.1 * g
            second[k] = 0.999 * second[k] + 0.001 * g * g
            rate = RATE * (1 - step / steps) * np.sqrt(1 - 0.999**step) / (1 - 0.9**step)
            p[k] = (p[k] - rate * first[k] / (np.sqrt(second[k]) + 1e-8)).astype(np.float32)
    return p


# -- the same network as IR --------------------------------------------------------------------------------------------


def network(p: Weights) -> Graph:
    g = Graph()
    x = g.parameter("image", "f32", ["?", 1, 8, 8])
    scale = g.constant(np.full((1, 1, 1, 1), 1 / 16, np.float32))
    x = binary(g, "Multiply", x, scale, "scaled")
    for k, (channels, size) in enumerate(((16, 8), (32, 4))):
        attributes = {
            "strides": "1,1",
            "dilations": "1,1",
            "pads_begin": "1,1",
            "pads_end": "1,1",
            "auto_pad": "explicit",
        }
        weights = g.constant(p[f"w{k}"], f"conv{k}/weights")
        dims = ["?", channels, size, size]
        (x,) = g.layer("Convolution", [x, weights], [("f32", dims)], name=f"conv{k}", attributes=attributes)
        x = binary(g, "Add", x, g.constant(p[f"b{k}"].reshape(1, -1, 1, 1), f"conv{k}/bias_values"), f"conv{k}/bias")
        (x,) = g.layer("ReLU", [x], [("f32", dims)], name=f"relu{k}")
        attributes = {"strides": "2,2", "kernel": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
        attributes |= {"rounding_type": "floor", "auto_pad": "explicit"}
        dims = ["?", channels, size // 2, size // 2]
        (x,) = g.layer("MaxPool", [x], [("f32", dims)], name=f"pool{k}", attributes=attributes)
    shape = g.constant(np.array([0, -1]), "flat/shape")
    (x,) = g.layer("Reshape", [x, shape], [("f32", ["?", 128])], name="flat", attributes={"special_zero": "true"})
    weights = g.constant(p["w2"], "dense/weights")
    attributes = {"transpose_a": "false", "transpose_b": "true"}
    (x,) = g.layer("MatMul", [x, weights], [("f32", ["?", 10])], name="dense", attributes=attributes)
    x = binary(g, "Add", x, g.constant(p["b2"].reshape(1, -1), "dense/bias_values"), "dense/bias")
    attributes = {"axis": "1"}
    (x,) = g.layer("SoftMax", [x], [("f32", ["?", 10])], name="softmax", names=["probabilities"], attributes=attributes)
    g.result(x, "probabilities/result")
    return g


def binary(g: Graph, type: str, x: Ref, y: Ref, name: str) -> Ref:
    return g.layer(type, [x, y], [(x.element, x.dims)], name=name, attributes={"auto_broadcast": "numpy"})[0]


def main() -> None:
    (images, digits), (held_images, held_digits) = data()
    weights = train(images, digits)
    answers = forward(weights, held_images)["probabilities"]
    accuracy = (answers.argmax(1) == held_digits).mean()
    print(f"accuracy on {HELD_OUT} held-out digits: {accuracy:.2%}")
    if accuracy < 0.97:
        raise SystemExit("that is too low; nothing was saved")
    save(network(weights), HERE, "digits")
    (HERE / "labels.txt").write_text("zero\none\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\n", newline="\n")
    save_example(HERE, [held_images[:16]], [answers[:16]])
    for digit in range(10):
        for k, image in enumerate(held_images[held_digits == digit][:2]):
            np.save(HERE / f"digit_{digit}_{k}.npy", image[None])


if __name__ == "__main__":
    main()
