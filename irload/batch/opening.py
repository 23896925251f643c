"""Start or resume a job: refuse to overwrite other outputs, and compare the options with the earlier run."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from contextlib import suppress
from pathlib import Path

from irload.batch.job import Job
from irload.batch.listing import Listing
from irload.batch.manifest import Manifest, NoManifest
from irload.batch.tables import Tables
from irload.batch.target import OutputTarget
from irload.errors import InputInvalid

LONGEST = 60
"""Maximum characters of the two values of an option in a message."""


def require_free(job: Job, source: Listing | Tables) -> None:
    """Raise FileExistsError for existing outputs, or an existing job that the options do not resume."""
    if job.force:
        return
    target = job.target
    begun = target.manifest.exists()
    if begun and not job.resume:
        raise FileExistsError(f"{target.manifest} exists already; --resume continues that job")
    if not begun:
        _refuse_existing(target, source)


def open_manifest(job: Job, source: Listing | Tables) -> Manifest:
    """The locked manifest of a new job, or of the job to resume.

    Raises FileExistsError for existing outputs, InputInvalid if another process is writing to the job or its options
    differ.
    """
    require_free(job, source)
    target = job.target
    facts = {"model": str(job.options.model), "digest": _digest(job), "settings": json.dumps(_settings(job))}
    resuming = job.resume and target.manifest.exists()
    target.job.mkdir(parents=True, exist_ok=True)
    manifest = _locked(target.manifest, force=job.force)
    try:
        if not resuming or manifest.get("digest") is None:
            manifest.clear()
            manifest.put(**facts)
        other = "another model" if manifest.get("digest") != facts["digest"] else ""
        if not other and (settings := manifest.get("settings")) != facts["settings"]:
            other = f"other options{_named_differences(settings, facts['settings'])}"
        if other:
            raise InputInvalid(f"the job in {target.job} was started with {other}; --force restarts it")
        if resuming and not target.is_folder and manifest.get("state") == "whole" and not target.path.exists():
            raise InputInvalid(f"the job in {target.job} is finished but {target.path} is missing; --force restarts it")
        for folder in (target.scratch, target.parts):
            folder.mkdir(exist_ok=True)
        tidy(target, manifest, parts=False)
    except BaseException:
        manifest.close()
        raise
    return manifest


def _locked(path: Path, *, force: bool) -> Manifest:
    """The manifest, locked against other jobs. With `force`, a file that is not a manifest is replaced."""
    try:
        return Manifest(path)
    except NoManifest:
        if not force:
            raise
    for suffix in ("", "-wal", "-shm"):
        with suppress(FileNotFoundError):
            os.unlink(f"{path}{suffix}")
    return Manifest(path)


def _refuse_existing(target: OutputTarget, source: Listing | Tables) -> None:
    if not target.is_folder:
        if os.path.lexists(target.path):
            raise FileExistsError(f"{target.path} exists already")
        return
    if target.path.is_dir() and any(target.path.iterdir()):
        for item in source:
            with suppress(InputInvalid):  # the item fails, and nothing is written
                output = target.output(item)
                if os.path.lexists(output):
                    raise FileExistsError(f"{output} exists already")


def tidy(target: OutputTarget, manifest: Manifest, *, parts: bool) -> None:
    """Remove half-written and unrecorded files of killed workers; with `parts`, all of the parts."""
    shutil.rmtree(target.scratch, ignore_errors=True)
    if parts:
        shutil.rmtree(target.parts, ignore_errors=True)
        return
    target.scratch.mkdir(parents=True, exist_ok=True)
    kept = set(manifest.parts())
    for file in target.parts.iterdir():
        if file.name not in kept:
            shutil.rmtree(file) if file.is_dir() and not file.is_symlink() else file.unlink()


def _digest(job: Job) -> str:
    """A digest of the model's files."""
    model = Path(job.options.model)
    weights = Path(job.options.weights) if job.options.weights else model.with_suffix(".bin")
    digest = hashlib.sha256()
    for file in _files_of(model) if model.is_dir() else (model, weights):
        if file.exists():
            with open(file, "rb") as stream:
                digest.update(hashlib.file_digest(stream, "sha256").digest())
    return digest.hexdigest()


def _files_of(folder: Path) -> list[Path]:
    """The files of a folder that may belong to a text model."""
    return sorted(f for f in folder.rglob("*") if f.suffix in (".xml", ".bin", ".json", ".jinja") and f.is_file())


def _named_differences(before: str | None, now: str) -> str:
    """The options that differ, as a part of a message: ` (top: 2, now 3)`. Empty for a manifest of another version."""
    earlier, present = json.loads(before or "{}"), json.loads(now)
    if earlier.keys() != present.keys():
        return ""
    texts: list[str] = []
    for name, value in present.items():
        if earlier[name] != value:
            short = len(earlier[name]) + len(value) < LONGEST
            texts.append(f"{name}: {earlier[name]}, now {value}" if short else name)
    return f" ({'; '.join(texts)})"


def _settings(job: Job) -> dict[str, str]:
    """The options on which results depend, each by its name and as text."""
    target, options = job.target, job.options
    shapes = sorted((options.shapes or {}).items(), key=str)
    columns = sorted(job.columns.items())
    settings: dict[str, object] = {
        "format": target.kind,
        "top": target.top,
        "labels": target.labels,
        "images": options.images,
        "shape": shapes,
        "cast": options.cast,
        "verify-inputs": options.hashed,
        "column": columns,
        "texts": options.texts,
    }
    return {name: repr(value) for name, value in settings.items()}
