"""Starts of processes that share one cache while the files of their model change: none may give a wrong result.

python -m tests.model_cache.changing_files STARTS SEED

A start is a forked process that has run no model. In calm rounds a change is complete before the start, and the result
must be the current version's. In storms the files change while processes start: if each file changes atomically, the
result must be the result of some version; a file that is written in place may be read half old and half new, or be
rejected. The calm rounds that follow test the plans that were cached during storms.
"""

from __future__ import annotations

import os
import random
import select
import sys
import tempfile
import traceback
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import numpy as np

import irload
from irload.model_cache import models_folder
from tests.model_cache.changes import ATOMIC, OTHERS, VERSIONS, WIDTH, Changing, value_of

AT_ONCE = 3
"""Processes that start together in a storm."""
Change = Callable[[Changing, int], None]


class Tally:
    """The number of starts by result, and a line for each wrong result."""

    def __init__(self) -> None:
        self.seen: Counter[str] = Counter()
        self.wrong: list[str] = []

    @property
    def starts(self) -> int:
        """All starts."""
        return self.seen.total()


def begin(model: str, folder: str = "/", inherited: int | None = None) -> tuple[int, int]:
    """Fork a process that compiles and runs a model; return its id and a pipe with its answer.

    `inherited`: a descriptor that the child closes.
    """
    reading, writing = os.pipe()
    child = os.fork()
    if child:
        os.close(writing)
        return child, reading
    try:
        if inherited is not None:
            os.close(inherited)
        os.chdir(folder)
        os.write(writing, _answer(model).encode())
    finally:
        os._exit(0)


def _answer(model: str) -> str:
    try:
        compiled = irload.compile_model(model, 1)
        result = compiled(np.ones((1, WIDTH), np.float32))[0]
    except irload.ReadError as error:
        return f"refused {error}"
    except BaseException:
        return f"failed {traceback.format_exc()}"
    low, high = float(result.min()), float(result.max())
    return f"{type(compiled).__name__} {low!r} {high!r}"


def end(child: int, reading: int) -> list[str]:
    """The answer: the class of the model, and the least and the largest output; or the error."""
    with os.fdopen(reading, "rb") as pipe:
        answer = pipe.read().decode()
    os.waitpid(child, 0)
    return answer.split(" ", 2)


def calm(files: Changing, tally: Tally, change: Change, k: int, rng: random.Random) -> None:
    """A change, then a start; sometimes by a path that is relative to the folder."""
    change(files, k)
    model, folder = ("model.xml", str(files.folder)) if rng.random() < 0.3 else (str(files.model), "/")
    answer = end(*begin(model, folder))
    tally.seen[answer[0]] += 1
    wanted = repr(value_of(VERSIONS[k]))
    if answer[1:] != [wanted, wanted]:
        tally.wrong.append(f"{change.__name__} to {VERSIONS[k]}: {answer}, expected {wanted}")


def storm(files: Changing, tally: Tally, change: Change, rng: random.Random) -> None:
    """Starts while versions flip."""
    change(files, 0)
    models_folder().clear()  # so that plans are cached during the storm
    waiting, stop = os.pipe()
    flipping = os.fork()
    if not flipping:
        os.close(stop)
        _flip(files, change, random.Random(rng.random()), waiting)
    os.close(waiting)
    answers = [end(*each) for each in [begin(str(files.model), inherited=stop) for _ in range(AT_ONCE)]]
    os.close(stop)
    _, status = os.waitpid(flipping, 0)
    assert status == 0, "the flipping process failed"
    known = {repr(value_of(version)) for version in VERSIONS}
    for answer in answers:
        tally.seen[f"storm: {answer[0]}"] += 1
        is_version = len(answer) == 3 and answer[1] == answer[2] and answer[1] in known
        if answer[0] == "failed" or (change in ATOMIC and not is_version):
            tally.wrong.append(f"storm of {change.__name__}: {answer}")


def _flip(files: Changing, change: Change, rng: random.Random, stop: int) -> NoReturn:
    """Change versions until the other end of a pipe is closed, and end the process."""
    try:
        while not select.select([stop], [], [], rng.uniform(0, 0.01))[0]:
            change(files, rng.randrange(len(VERSIONS)))
        os._exit(0)
    finally:
        traceback.print_exc()
        os._exit(1)


def play(starts: int, seed: int, root: Path) -> Tally:
    """Start `starts` processes with the cache of the environment."""
    rng = random.Random(seed)
    tally = Tally()
    files = Changing(root)
    changes = [*ATOMIC, *OTHERS]
    try:
        files.mounted(0)
        changes.append(Changing.mounted)
    except OSError as error:
        print(f"without mounts: {error}", file=sys.stderr)
    irload.compile_model(str(root / "v0" / "model.xml"), 1, cache=False)  # forked processes inherit the code
    try:
        while tally.starts < starts:
            if rng.random() < 0.15:
                storm(files, tally, rng.choice([*ATOMIC, Changing.in_place, Changing.removed]), rng)
            calm(files, tally, rng.choice(changes), rng.randrange(len(VERSIONS)), rng)
    finally:
        files.close()
    return tally


def main() -> int:
    starts, seed = int(sys.argv[1]), int(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        os.environ.update(IRLOAD_CACHE_DIR=f"{folder}/cache", IRLOAD_JIT="auto", IRLOAD_MODEL_CACHE="on")
        tally = play(starts, seed, Path(folder) / "models")
    print(f"{tally.starts} starts: {dict(tally.seen)}; {len(tally.wrong)} wrong")
    print(*tally.wrong[:20], sep="\n")
    return bool(tally.wrong)


if __name__ == "__main__":
    sys.exit(main())
