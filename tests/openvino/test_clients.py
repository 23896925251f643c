"""The comparison and the table of the clients, which `make test-clients` runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.clients.comparing import differences
from tests.clients.table import CLIENTS


def compared(tmp_path, ours, theirs):
    for name, arrays in (("ours", ours), ("theirs", theirs)):
        np.savez(tmp_path / f"{name}.npz", **arrays)
    return differences(tmp_path / "ours.npz", tmp_path / "theirs.npz")


def test_differences(tmp_path):
    x, tokens = np.array([1.0, 200.0], np.float32), np.array([3, 4])
    assert compared(tmp_path, {"x": x, "t": tokens}, {"x": x * np.float32(1 + 5e-5), "t": tokens}) == []
    assert compared(tmp_path, {"x": x + np.float32(1)}, {"x": x}) == ["x differs by 1"]
    assert compared(tmp_path, {"t": tokens}, {"t": tokens[::-1]}) == ["t differs in 2 elements"]
    assert compared(tmp_path, {"x": x * np.nan}, {"x": x}) == ["x differs by nan"]
    assert compared(tmp_path, {"x": x}, {"x": x[None]}) == ["x is float32[2], expected float32[1, 2]"]
    assert compared(tmp_path, {"x": x}, {"y": x}) == [f"{name} is an output of one run only" for name in "xy"]
    assert compared(tmp_path, {}, {}) == ["the client returned no outputs"]


def test_every_client_has_its_scripts():
    folder = Path(__file__).parents[1] / "clients"
    listed = {f"{kind}_{client.name}.py" for client in CLIENTS for kind in ("client", "export")}
    assert listed == {path.name for path in folder.iterdir() if path.name.startswith(("client_", "export_"))}
