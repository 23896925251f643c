"""What a job is to do, and how far it is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irload.batch.items import Done, WorkerOptions
from irload.batch.target import Target
from irload.errors import DeclaredDiffers


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be done. `options.target` is `target`; `address` is that of a Ray cluster.

    `task_size` is the number of items that a worker takes at a time, `columns` are those of a table that feed inputs,
    by input. `keep_going`: do all items even if the first ones all fail for one reason.
    """

    words: Sequence[str]
    options: WorkerOptions
    target: Target
    workers: int = 1
    engine: str = "local"
    address: str | None = None
    resume: bool = False
    force: bool = False
    fail_fast: bool = False
    keep_going: bool = False
    columns: Mapping[str, str] = field(default_factory=dict[str, str])
    task_size: int = 64


@dataclass(slots=True)
class Summary:
    """How far a job is, and at its end what came of it.

    `before` counts items done by earlier runs of the job, `changed` those done again as their inputs changed since,
    `removed` those whose inputs are gone. `stopped` is the reason for which all of the first items failed, where that
    ended the job.
    """

    total: int = 0
    before: int = 0
    done: int = 0
    failed: int = 0
    samples: int = 0
    seconds: float = 0.0
    batching: str = ""
    deaths: int = 0
    changed: int = 0
    removed: int = 0
    stopped: str = ""
    interrupted: bool = False
    finished: bool = False
    failures: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    warnings: list[str] = field(default_factory=list[str])
    """Those of the model, as `CompiledModel.warnings` has them."""
    differences: list[DeclaredDiffers] = field(default_factory=list[DeclaredDiffers])
    """The ports among them that declare what is not inferred."""
    notes: list[str] = field(default_factory=list[str])
    """The warnings among them that concern the job."""

    def count(self, done: Done) -> None:
        """Take in what became of a task."""
        failed = sum(1 for r in done.records if r.reason)
        self.failed += failed
        self.done += len(done.records) - failed
        self.samples += sum(r.samples for r in done.records if not r.reason)
        for difference in done.differences:
            if str(difference) not in self.warnings:  # another worker may have found it, too
                self.warnings.append(str(difference))
                self.differences.append(difference)
