"""The description of a job and its progress."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from irload.batch.items import Done, WorkerOptions
from irload.batch.target import OutputTarget
from irload.errors import DeclaredDiffers


@dataclass(frozen=True, slots=True)
class Job:
    """A job. `options.target` is `target`; `address` is the address of a Ray cluster.

    `task_size` is the number of items per task, `columns` maps inputs to the table columns that feed them.
    `keep_going`: process all items even if the first ones all fail for one reason.
    """

    words: Sequence[str]
    options: WorkerOptions
    target: OutputTarget
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
    """The progress of a job, and at its end its result.

    `before` counts items done by earlier runs of the job, `changed` the items repeated because their inputs changed,
    `removed` the items whose inputs no longer exist, `out_of_memory` the items that failed for lack of memory.
    `stopped`: the reason for which the first items all failed, which ended the job; otherwise empty.
    """

    total: int = 0
    before: int = 0
    done: int = 0
    failed: int = 0
    out_of_memory: int = 0
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
    """Warnings of the model, equal to `CompiledModel.warnings`."""
    differences: list[DeclaredDiffers] = field(default_factory=list[DeclaredDiffers])
    """The warnings about ports whose declaration differs from the inferred type; also in `warnings`."""
    notes: list[str] = field(default_factory=list[str])
    """The warnings about the job."""

    def count(self, done: Done) -> None:
        """Add the results of a task."""
        failed = sum(1 for r in done.records if r.reason)
        self.failed += failed
        self.out_of_memory += sum(r.is_out_of_memory for r in done.records)
        self.done += len(done.records) - failed
        self.samples += sum(r.samples for r in done.records if not r.reason)
        for difference in done.differences:
            if str(difference) not in self.warnings:  # another worker may have reported it, too
                self.warnings.append(str(difference))
                self.differences.append(difference)
