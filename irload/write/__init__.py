"""Writing IR: a Model as model.xml and model.bin that OpenVINO loads, and repairs of a file in place."""

from __future__ import annotations

from irload.write.patch import correct_ports
from irload.write.save import save_model

__all__ = ["correct_ports", "save_model"]
