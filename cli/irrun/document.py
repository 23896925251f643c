"""The documents that `--json` prints."""

from __future__ import annotations

from typing import Any

Document = dict[str, Any]
