"""IR versions 2 to 7: rewrites their layers to operations of opset1 to opset5 while a file is read."""

from __future__ import annotations

from importlib import import_module

from irload.read.faults import OnFault
from irload.read.legacy.graph import rewritten
from irload.read.raw import RawNet

__all__ = ["modernize"]

for _family in (
    *("activations", "arithmetic", "convolutions", "detection", "endpoints", "movement", "normalizations"),
    *("poolings", "recurrent", "renamed", "reshaping", "resizing"),
):
    import_module(f"{__name__}.{_family}")  # registers the functions that rewrite layers


def modernize(net: RawNet, file: str | None, report: OnFault) -> None:
    """Replace the layers of a net of version 2 to 7 by operations, and list the replacements in `net.rewritten`.

    Layers that cannot be rewritten are reported and keep their type, so that they are unknown operations.
    """
    net.graph = rewritten(net.graph, file, report, net.rewritten)
