"""Safety limits: what a file from a stranger may ask for before irload says no. Change them on `irload.limits`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Limits:
    """Bounds on files and on what running them may take. All are plain numbers; raise one to load something larger."""

    xml_bytes: int = 1 << 30
    """Size of the XML file."""
    layers: int = 2_000_000
    """Layers in a file, those of bodies included."""
    attributes: int = 1_000
    """Attributes of one XML element."""
    element_bytes: int = 1 << 26
    """Bytes of XML that one layer (without its bodies) or one block of metadata may take."""
    nesting: int = 32
    """Depth of bodies inside bodies."""
    tensor_bytes: int = 1 << 34
    """Bytes of one tensor."""
    body_passes: int = 20_000
    """Passes over bodies while one inference of shapes and types lets them settle."""
    iterations: int = 1_000_000
    """Iterations of all loops in one inference."""


limits = Limits()
"""The limits in force."""
