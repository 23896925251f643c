"""The progress of a batch job: a bar on a terminal, plain lines otherwise, a summary at the end."""

from __future__ import annotations

import time
from typing import Any, Self

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeRemainingColumn

from irload.batch.job import Job, Summary
from irload.batch.names import shown
from irrun.notice import Notice
from irrun.render import safe, stderr

INTERVAL = 10.0
"""Seconds between plain lines."""
SHOWN = 10
"""Upper bound of the failures in the summary."""


class BatchProgress:
    """Shows the progress on stderr; called with the summary so far."""

    def __init__(self) -> None:
        self._console = stderr()
        self._started = time.monotonic()
        self._said = self._started
        self._noted = 0
        self._bar: Progress | None = None
        self._task: TaskID | None = None
        self.notice = Notice(self._console)

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            columns = (
                BarColumn(),
                MofNCompleteColumn(),
                TextColumn("{task.fields[rate]}"),
                TimeRemainingColumn(),
                TextColumn("{task.fields[failures]}", style="red"),
            )
            self._bar = bar = Progress(*columns, console=self._console, transient=True)
            bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, summary: Summary) -> None:
        self.notice(summary.differences)
        for note in summary.notes[self._noted :]:
            self._console.print(f"irrun: [bold yellow]warning:[/] {safe(note)}", soft_wrap=True)
        self._noted = len(summary.notes)
        now = time.monotonic()
        handled = summary.before + summary.done + summary.failed
        if self._bar is not None:
            fields: dict[str, Any] = {"rate": rate(summary, now - self._started), "failures": failures(summary)}
            if self._task is None:
                self._task = self._bar.add_task("", total=summary.total, completed=handled, **fields)
            self._bar.update(self._task, completed=handled, **fields)
        elif now - self._said >= INTERVAL:
            self._said = now
            words = [
                f"{handled}/{summary.total} items",
                rate(summary, now - self._started),
                left(summary, now - self._started),
            ]
            words.append(failures(summary))
            self._console.print(", ".join(w for w in words if w))


def rate(summary: Summary, seconds: float) -> str:
    """Return items per second as text."""
    return f"{(summary.done + summary.failed) / max(seconds, 1e-9):.3g} items/s"


def left(summary: Summary, seconds: float) -> str:
    """Return the remaining time as text."""
    handled = summary.done + summary.failed
    if not handled:
        return ""
    remaining = int((summary.total - summary.before - handled) * seconds / handled)
    return f"{remaining // 3600}:{remaining // 60 % 60:02}:{remaining % 60:02} left"


def failures(summary: Summary) -> str:
    """Return the number of failed items as text."""
    return f"{summary.failed} failed" if summary.failed else ""


def report(job: Job, summary: Summary) -> dict[str, Any]:
    """Return the document of schemas/batch.schema.json."""
    return {
        "model": str(job.options.model),
        "output": str(job.target.path),
        "manifest": str(job.target.manifest),
        "engine": job.engine,
        "batching": summary.batching,
        "items": summary.total,
        "before": summary.before,
        "done": summary.done,
        "failed": summary.failed,
        "samples": summary.samples,
        "changed": summary.changed,
        "removed": summary.removed,
        "stopped": shown(summary.stopped) or None,
        "worker_deaths": summary.deaths,
        "seconds": round(summary.seconds, 3),
        "finished": summary.finished,
        "interrupted": summary.interrupted,
        "warnings": summary.warnings,
        "failures": [{"input": shown(name), "reason": shown(reason)} for name, reason in summary.failures],
    }


def show_summary(job: Job, summary: Summary) -> None:
    """Show the result of the job on stderr; stdout is for JSON only."""
    console = stderr()
    for name, reason in summary.failures[:SHOWN]:
        text = reason if name in reason else f"{name}: {reason}"
        console.print(f"[red]failed[/] {safe(shown(text))}", soft_wrap=True)
    if summary.failed > SHOWN:
        console.print(f"and {summary.failed - SHOWN} more failures (in {safe(job.target.manifest)})", soft_wrap=True)
    words = [f"{summary.done} done"]
    words += [f"{summary.before} done before"] if summary.before else []
    words += [f"{summary.changed} of changed inputs"] if summary.changed else []
    words += [f"{summary.removed} inputs removed since"] if summary.removed else []
    words += [f"{summary.failed} failed"] if summary.failed else []
    words += [f"{summary.deaths} workers replaced"] if summary.deaths else []
    words.append(f"{summary.seconds:.1f} s, {rate(summary, summary.seconds)}, {summary.batching}")
    console.print(f"{safe(job.target.path)}: {', '.join(words)}", soft_wrap=True)
    if summary.stopped:
        console.print(
            f"stopped: the first {summary.failed} items all failed for one reason; --keep-going runs the others",
            soft_wrap=True,
        )
    elif not summary.finished:
        console.print("not finished; the same command with --resume continues", soft_wrap=True)
