"""The processors granted by the control groups of a container, from file trees in the format of the kernel."""

from __future__ import annotations

from pathlib import Path

import pytest

from irload.system import machine
from irload.system.quota import processor_quota

V1 = "33 31 0:29 {root} /sys/fs/cgroup/cpu,cpuacct rw,relatime shared:9 - cgroup cgroup rw,cpu,cpuacct"
V2 = "32 31 0:30 {root} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate"
OTHERS = "22 1 8:1 / / rw,relatime - ext4 /dev/sda1 rw\n35 31 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory"


def tree(folder: Path, groups: str, mounts: str, files: dict[str, str]) -> str:
    """The files that a process sees below `/`."""
    shown = {"proc/self/cgroup": groups, "proc/self/mountinfo": f"{OTHERS}\n{mounts}\n", **files}
    for name, text in shown.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"{text}\n", encoding="ascii")
    return str(folder)


def v1(folder: str, quota: int, period: int = 100_000) -> dict[str, str]:
    base = f"sys/fs/cgroup/cpu,cpuacct{folder}"
    return {f"{base}/cpu.cfs_quota_us": str(quota), f"{base}/cpu.cfs_period_us": str(period)}


def v2(folder: str, text: str) -> dict[str, str]:
    return {f"sys/fs/cgroup{folder}/cpu.max": text}


@pytest.mark.parametrize(
    ("groups", "mounts", "files", "quota"),
    [
        ("", "", {}, None),
        ("0::/", V2.format(root="/"), {}, None),
        ("0::/app", V2.format(root="/"), v2("/app", "max 100000"), None),
        ("0::/app", V2.format(root="/"), v2("/app", "150000 100000"), 1.5),
        # an enclosing group grants less
        ("0::/pod/app", V2.format(root="/"), v2("/pod", "50000 100000") | v2("/pod/app", "400000 100000"), 0.5),
        ("0::/pod/app", V2.format(root="/"), v2("/pod", "200000 100000") | v2("/pod/app", "max 100000"), 2),
        # a container with a separate cgroup namespace
        ("0::/", V2.format(root="/"), v2("", "200000 50000"), 4),
        # a container without a separate namespace, which sees the path of the host
        ("0::/docker/1f", V2.format(root="/docker/1f"), v2("", "100000 100000"), 1),
        ("0::/docker/1f/in", V2.format(root="/docker/1f"), v2("", "300000 100000") | v2("/in", "max 100000"), 3),
        # a process moved out of its namespace
        ("0::/../other", V2.format(root="/"), v2("", "100000 100000") | v2("/other", "1 100000"), 1),
        ("4:cpu,cpuacct:/a\n0::/", V1.format(root="/"), v1("/a", -1), None),
        ("4:cpu,cpuacct:/a\n0::/", V1.format(root="/"), v1("/a", 50_000), 0.5),
        ("4:cpu,cpuacct:/a/b\n0::/", V1.format(root="/"), v1("/a/b", -1) | v1("/a", 20_000, 10_000), 2),
        ("4:cpu,cpuacct:/docker/1f", V1.format(root="/docker/1f"), v1("", 250_000), 2.5),
        # version 2 for everything except the processors
        (
            "4:cpu,cpuacct:/a\n0::/a",
            f"{V1.format(root='/')}\n{V2.format(root='/').replace('/cgroup ', '/cgroup/unified ', 1)}",
            v1("/a", 100_000),
            1,
        ),
        ("0::/a", V2.format(root="/"), v2("/a", "nonsense"), None),
        ("0::/a", V2.format(root="/"), v2("/a", "100000 0"), None),
        ("0::/a b", V2.format(root="/x\\040y"), v2("", "100000 100000"), 1),
    ],
)
def test_quotas(tmp_path, groups, mounts, files, quota):
    assert processor_quota(tree(tmp_path, groups, mounts, files)) == quota


@pytest.mark.parametrize(("quota", "count"), [(None, 3), (0.2, 1), (1, 1), (1.5, 2), (2, 2), (64, 3)])
def test_threads_by_default(monkeypatch, quota, count):
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: {1, 5, 7}, raising=False)
    monkeypatch.setattr(machine, "processor_quota", lambda: quota)
    monkeypatch.delenv("IRLOAD_NUM_THREADS", raising=False)
    assert machine.processors() == machine.thread_count(None) == count
    assert machine.thread_count(7) == 7
    assert machine.exceeds_quota(2) == (quota is not None and quota < 2)
