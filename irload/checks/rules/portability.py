"""IR8xx: portability to an older runtime, where one is named as target."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.rule import Hit, file_rule
from irload.checks.subject import Subject

# The newest opset of each release that brought one. The published table ends with opset15; opset16 and opset17 stand
# with the first release known to load them.
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
    """(year, number) of `2023.0` or `2023.0.1`; None for anything else."""
    year, _, rest = text.partition(".")
    number = rest.partition(".")[0]
    return (int(year), int(number)) if year.isdigit() and number.isdigit() and int(year) >= 2020 else None


def newest_opset(release: tuple[int, int]) -> int:
    """The newest opset that a release reads."""
    return max((n for r, n in RELEASES.items() if r <= release), default=0)


def release_of(opset: int) -> str:
    """The first release that reads an opset, as text."""
    year, number = min(r for r, n in RELEASES.items() if n >= opset)
    return f"{year}.{number}"


@file_rule("IR801", "error", "operation newer than the target")
def too_new_for_target(subject: Subject) -> Iterator[Hit]:
    """With `--target RELEASE`: the operation appeared in an opset that this OpenVINO release does not have.

    What counts is the opset in which this version of the operation appeared, not the one the layer names.

    Example: a Pad of opset12 with `--target 2023.0`.
    """
    release = parse_release(subject.target or "")
    if release is None:
        return
    most = newest_opset(release)
    for scope in subject.scopes:
        for layer, node in scope.pairs():
            if node.op.namespace == "opset" and node.op.since > most:
                needs = release_of(node.op.since)
                message = f"{layer.type} of {node.op.opset} needs OpenVINO {needs}; {subject.target} has opset{most}"
                yield Hit(layer, message)


@file_rule("IR802", "error", "IR version newer than the target")
def version_too_new(subject: Subject) -> Iterator[Hit]:
    """With `--target RELEASE`: the file is IR v11, which OpenVINO reads from 2022.1 on.

    Example: a v11 file with `--target 2021.4`.
    """
    release = parse_release(subject.target or "")
    if release is not None and subject.model is not None and subject.net.version >= 11 and release < FIRST_WITH_V11:
        yield Hit(None, f"the file is IR v11, which OpenVINO reads from 2022.1 on; the target is {subject.target}")
