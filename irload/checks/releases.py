"""OpenVINO releases, and the opsets and IR versions that each can read."""

from __future__ import annotations

# The newest opset of each release that added one. The published table ends with opset15; opset16 and opset17 are
# listed with the first release known to load them.
RELEASES = {
    (2020, 1): 1,
    (2020, 2): 2,
    (2020, 4): 3,
    (2021, 1): 4,
    (2021, 2): 5,
    (2021, 3): 6,
    (2021, 4): 7,
    (2022, 1): 8,
    (2022, 2): 9,
    (2022, 3): 10,
    (2023, 0): 11,
    (2023, 1): 12,
    (2023, 2): 13,
    (2024, 0): 14,
    (2024, 5): 15,
    (2025, 2): 16,
    (2026, 1): 17,
}

FIRST_WITH_V11 = (2022, 1)


def parse_release(text: str) -> tuple[int, int] | None:
    """(year, number) of `2023.0` or `2023.0.1`; None for other text."""
    year, _, rest = text.partition(".")
    number = rest.partition(".")[0]
    return (int(year), int(number)) if year.isdigit() and number.isdigit() and int(year) >= 2020 else None


def known_releases() -> str:
    """The form of a release, and the releases that added an opset, as text."""
    names = ", ".join(f"{year}.{number}" for year, number in RELEASES)
    return f"A release is YEAR.NUMBER; these added opsets: {names}"


def newest_opset(release: tuple[int, int]) -> int:
    """The newest opset that a release reads."""
    return max((n for r, n in RELEASES.items() if r <= release), default=0)


def release_of(opset: int) -> str:
    """The first release that reads an opset, as text."""
    year, number = min(r for r, n in RELEASES.items() if n >= opset)
    return f"{year}.{number}"
