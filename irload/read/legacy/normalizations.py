"""Normalizations over channels, positions and neighbours."""

from __future__ import annotations

from irload.errors import AttributeInvalid, ReadError
from irload.read.legacy.layer import LegacyLayer, Wire, channelwise
from irload.read.legacy.table import rewrites


@rewrites("Norm")
def norm(layer: LegacyLayer) -> Wire:
    """LRN over channels (`region` across) or over positions (same)."""
    region = layer.text("region", "across").lower()
    if region not in ("across", "same"):
        raise AttributeInvalid(f"attribute region must be across or same, found '{region[:40]}'")
    axes = [1] if region == "across" else list(range(2, len(layer.input_dims())))
    data = {
        "alpha": layer.text("alpha", "1"),
        "beta": layer.text("beta", "1"),
        "bias": layer.text("k", "1"),
        "size": layer.text("local_size" if layer.has("local_size") else "size"),
    }
    return layer.op("LRN", layer.input(), layer.constant("axes", axes), data=data)


@rewrites("Normalize")
def normalize(layer: LegacyLayer) -> Wire:
    """NormalizeL2 over channels, or over all axes but the first, times the weights."""
    dims = layer.input_dims()
    axes = list(range(1, len(dims))) if layer.flag("across_spatial", True) else [1]
    data = {"eps": layer.text("eps", "1e-10"), "eps_mode": "add"}
    normalized = layer.op("NormalizeL2", layer.input(), layer.constant("axes", axes), data=data)
    count = 1 if layer.flag("channel_shared", True) else dims[1]
    weights = layer.blob("weights", channelwise(len(dims), count))
    return normalized if weights is None else layer.op("Multiply", normalized, weights)


@rewrites("MVN")
def mvn(layer: LegacyLayer) -> Wire:
    """MVN."""
    data = {
        "across_channels": str(layer.flag("across_channels", False)).lower(),
        "normalize_variance": str(layer.flag("normalize_variance", False)).lower(),
        "eps": layer.text("eps", "1e-9"),
    }
    return layer.op("MVN", layer.input(), data=data, opset="opset2")


@rewrites("GRN")
def grn(layer: LegacyLayer) -> Wire:
    """GRN."""
    return layer.op("GRN", layer.input(), data={"bias": layer.text("bias")})


@rewrites("BatchNormalization")
def batch_normalization(layer: LegacyLayer) -> Wire:
    """BatchNormInference with unit scale. The weights are the variances, the biases the means."""
    channels = layer.input_dims()[1]
    mean, variance = layer.blob("biases", [channels]), layer.blob("weights", [channels])
    if mean is None or variance is None:
        raise ReadError("has no weights (the variances) or no biases (the means)")
    shape = layer.constant("channels", [channels])
    ones, zeros = (layer.op("Broadcast", layer.scalar(name, n), shape) for name, n in (("gamma", 1.0), ("beta", 0.0)))
    data = {"epsilon": layer.text("epsilon")}
    return layer.op("BatchNormInference", layer.input(), ones, zeros, mean, variance, data=data, opset="opset5")
