"""The version of irload, in the format of OpenVINO's version."""

from __future__ import annotations

import irload

__all__ = ["Version", "get_version", "version"]

API = "2026.4.0"
"""The version of OpenVINO whose API the adapters follow: scripts compare it."""


class Version:
    """A version: `major`, `minor`, `patch`, `build_number`, `description`."""

    def __init__(self, major: int, minor: int, patch: int, build_number: str, description: str) -> None:
        self.major, self.minor, self.patch = major, minor, patch
        self.build_number = build_number
        self.description = description

    def __repr__(self) -> str:
        return f"<Version: {self.build_number} {self.description}>"


def get_version() -> str:
    """The version of the API, a build number in OpenVINO's format, which libraries parse, and irload's version."""
    return f"{API}-0-irload-{irload.__version__}"


def version() -> Version:
    """The version of the device."""
    major, minor, patch = map(int, API.split("."))
    return Version(major, minor, patch, get_version(), "irload")
