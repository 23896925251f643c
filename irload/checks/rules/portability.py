"""IR8xx: portability to an older runtime, if one is named as target."""

from __future__ import annotations

from collections.abc import Iterator

from irload.checks.releases import FIRST_WITH_V11, newest_opset, parse_release, release_of
from irload.checks.rule import Hit, file_rule
from irload.checks.subject import Subject


@file_rule("IR801", "error", "operation newer than the target")
def too_new_for_target(subject: Subject) -> Iterator[Hit]:
    """With `--target RELEASE`: the operation appeared in an opset that this OpenVINO release does not have.

    The opset that introduced this version of the operation counts, not the one that the layer names.

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
