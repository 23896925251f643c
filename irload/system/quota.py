"""The share of processors that Linux control groups grant this process: `docker --cpus`, limits in Kubernetes.

A group may use its quota of processor time in each period, on any number of processors. If more threads run than the
quota grants processors, they exhaust it early, and all of them stall until the next period.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path, PurePosixPath

_OCTAL = re.compile(r"\\([0-7]{3})")


@cache
def processor_quota(root: str = "/") -> float | None:
    """Return the processors granted by the tightest quota of the group and its ancestors; None if there is no quota.

    `root`: the folder that contains `proc` and the control groups. The result of the first call is cached.
    """
    quotas = [quota for folder in _folders(Path(root)) for quota in (_v2(folder), _v1(folder)) if quota is not None]
    return min(quotas, default=None)


def _folders(root: Path) -> Iterator[Path]:
    """Yield the folder of each group of the process, and of its ancestors as far as they are mounted."""
    groups = _groups(root)
    for point, mounted, kind, options in _mounts(root):
        group = groups.get("" if kind == "cgroup2" else "cpu" if "cpu" in options else "none")
        if group is None:
            continue
        folder = root / point.lstrip("/")
        inside = PurePosixPath(group)
        # If the mounted group is not an ancestor of the process's group, as in a container, only its folder is used.
        parts = inside.relative_to(mounted).parts if inside.is_relative_to(mounted) else ()
        for k in range(0 if ".." in parts else len(parts), -1, -1):
            yield folder.joinpath(*parts[:k])


def _groups(root: Path) -> dict[str, str]:
    """Return the path of the process's group by controller; the controller of version 2 is the empty string."""
    groups: dict[str, str] = {}
    for line in _lines(root / "proc/self/cgroup"):
        _, controllers, path = (*line.split(":", 2), "", "")[:3]
        groups |= {str(controller): path for controller in controllers.split(",")}
    return groups


def _mounts(root: Path) -> Iterator[tuple[str, str, str, list[str]]]:
    """Yield the mounts of control groups: folder, group, file system type, options."""
    for line in _lines(root / "proc/self/mountinfo"):
        mount, sign, system = line.partition(" - ")
        fields, kinds = mount.split(" "), system.split(" ")
        if sign and len(fields) > 4 and len(kinds) > 2 and kinds[0] in ("cgroup", "cgroup2"):
            mounted, point = (_OCTAL.sub(lambda m: chr(int(m[1], 8)), text) for text in fields[3:5])
            yield point, mounted, kinds[0], kinds[2].split(",")


def _v2(folder: Path) -> float | None:
    return _share(*[*" ".join(_lines(folder / "cpu.max")).split(), "", ""][:2])


def _v1(folder: Path) -> float | None:
    return _share(*("".join(_lines(folder / f"cpu.cfs_{name}_us")) for name in ("quota", "period")))


def _share(quota: str, period: str) -> float | None:
    """Return quota / period; None if the quota is unlimited: `max`, −1 or an empty text."""
    return int(quota) / int(period) if quota.isdecimal() and period.isdecimal() and int(period) else None


def _lines(file: Path) -> list[str]:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace").splitlines()
    return []
