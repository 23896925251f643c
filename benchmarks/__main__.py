"""`make bench`: compares irload with OpenVINO and others on the same models; writes benchmarks/RESULTS.md."""

from __future__ import annotations

import argparse
import math
import os
import platform
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

from benchmarks.busy import one_busy_process
from benchmarks.decoder import Decoder, decoder
from benchmarks.measure import Latencies, Start, help_seconds, latencies, start
from benchmarks.worker import PEERS
from benchmarks.workloads import described, workload

HERE = Path(__file__).parent
ROOT = HERE.parent
BUILT = HERE / ".models"
HELP_MS = 150
"""Target time of `irrun --help` on an idle machine."""
ARCHITECTURES = ("resnet50", "mobilenet_v2", "vgg11", "bert_base")
FILES = ("model.xml", "openvino_model.xml")
"""File names of models; Optimum exports openvino_model.xml."""


def main() -> None:
    arguments = parse()
    peers = [p for p in PEERS if find_spec(PEERS[p].module)]
    folders = prepared() + model_folders(arguments.models)
    folders += sorted(p.parent for p in (ROOT / "models").glob("*/model.xml"))
    if arguments.only:
        folders = [f for f in folders if any(word in f.name for word in arguments.only)]
    found: dict[int, dict[str, Latencies]] = {}
    beside: dict[str, Latencies] = {}
    runs: dict[int, dict[str, tuple[str, dict[str, dict[str, float]]]]] = {}
    fewer = max(3, arguments.rounds // 3)
    changing = [f for f in map(model_file, folders) if described(f)[0] is not None]
    folders = [f for f in folders if (f / "model.xml").exists() and (has_inputs(f) or is_static(f))]
    for threads in arguments.threads:
        for file in changing:
            found_run = workload(file, threads, fewer)
            if found_run is not None:
                runs.setdefault(threads, {})[file.parent.name] = found_run
                print(file.parent.name, threads, *found_run, flush=True)
        for folder in folders:
            names = [p for p in peers if able(p, folder)]
            found.setdefault(threads, {})[folder.name] = measured = latencies(names, folder, threads, arguments.rounds)
            print(folder.name, threads, {k: round(v, 3) for k, v in measured.ms.items()}, flush=True)
    names = [p for p in peers if PEERS[p].beside_busy]
    for folder in folders:
        with one_busy_process():
            beside[folder.name] = latencies(names, folder, 2, fewer)
    starts: dict[str, dict[str, Start]] = {}
    for folder in folders:
        try:
            starts[folder.name] = start(folder, 1, fewer)
        except RuntimeError as error:
            print(error, file=sys.stderr)
    # Last, because decoders run in this process: later child processes would report at least its peak memory.
    decoders: dict[str, list[Decoder]] = {f.name: decoder(f) for f in folders if "decoder" in f.name}
    text = report(arguments.rounds, found, starts, decoders, help_seconds(arguments.rounds))
    text += "\n".join([*workload_lines(runs), *beside_lines(beside), ""])
    arguments.out.write_text(text, encoding="utf-8")
    print(f"wrote {arguments.out}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, help="a folder of folders with model.xml, model.bin and in_*.npy")
    parser.add_argument("--only", action="append", help="only models whose name contains this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=lambda text: [int(t) for t in text.split(",")], default=[1, 2])
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    return parser.parse_args()


def prepared() -> list[Path]:
    """Return the architectures of benchmarks/peers, created on first use; none without torch and onnx."""
    folders: list[Path] = []
    for name in ARCHITECTURES if find_spec("torch") and find_spec("onnx") else ():
        command = [sys.executable, "-m", "benchmarks.prepare", str(BUILT / name), name]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode:
            print(f"{name} could not be created: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        else:
            folders.append(BUILT / name)
    return folders


def model_folders(folder: Path | None) -> list[Path]:
    return [] if folder is None else sorted({p.parent for name in FILES for p in folder.glob(f"*/{name}")})


def model_file(folder: Path) -> Path:
    """Return the model in a folder."""
    return next(folder / name for name in FILES if (folder / name).exists())


def has_inputs(folder: Path) -> bool:
    """Return True if the folder has arrays as inputs."""
    return any(folder.glob("*.npy"))


def is_static(folder: Path) -> bool:
    """Return True if random inputs of the declared shapes are possible."""
    from irload import read_model

    return all(p.partial_shape.is_static for p in read_model(model_file(folder)).inputs)


def able(peer: str, folder: Path) -> bool:
    """Return True if the peer supports the file format of the model."""
    if PEERS[peer].compile is not None:
        return True
    return folder.name in ARCHITECTURES if peer == "torch" else (folder / "model.onnx").exists()


def report(
    rounds: int,
    found: dict[int, dict[str, Latencies]],
    starts: dict[str, dict[str, Start]],
    decoders: dict[str, list[Decoder]],
    help_time: float,
) -> str:
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`. Times are medians in ms; ×: irload's time over OpenVINO's: below 1 irload is faster.",
        "NumPy and jit: irload at f32 without and with compiled kernels, compared with OpenVINO at f32. jit auto:",
        "irload with precision auto, compared with OpenVINO in its default configuration. difference: the largest",
        "absolute difference of jit from OpenVINO at f32 in the first 64 values of the first output, divided by the",
        "largest absolute value of OpenVINO.",
        "",
        f"- {processor()}, {os.cpu_count()} processors, {platform.system()}, Python {platform.python_version()}",
        f"- compiled kernels for {target()}; {', '.join(versions())}",
        f"- batch as in the input; {rounds} rounds in which the peers alternate, each in a separate process",
        "- OpenVINO: CPU, LATENCY, one stream; at f32 without dynamic quantization",
    ]
    for threads, rows in found.items():
        lines += ["", f"## Latency, {threads} thread{'s' if threads > 1 else ''}", ""]
        lines += [row(["model", *PEERS, "difference"]), row(["---", *["---:"] * (len(PEERS) + 1)])]
        for name, one in rows.items():
            off = one.difference.get("jit", one.difference.get("NumPy"))
            lines.append(row([name, *(cell(one, p) for p in PEERS), "–" if off is None else f"{off:.0e}"]))
        for name, baseline in baselines().items():
            ratios = [o.ms[name] / o.ms[baseline] for o in rows.values() if baseline in o.ms and name in o.ms]
            if ratios:
                mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                lines += [
                    "",
                    f"{name} over {baseline}, geometric mean: {mean:.2f}× ({len(ratios)} of {len(rows)} models).",
                ]
    lines += ["", "## From the start of the process to the first result, 1 thread", ""]
    lines += [row(["model", "irrun s", "OpenVINO s ×", "irrun peak MiB", "OpenVINO peak MiB ×"])]
    lines += [row(["---", "---:", "---:", "---:", "---:"])]
    for name, one in starts.items():
        a, b = one["irload"], one["OpenVINO"]
        seconds = f"{b.seconds:.2f} ({a.seconds / b.seconds:.2f}×)"
        lines.append(
            row([name, f"{a.seconds:.2f}", seconds, f"{a.memory:.0f}", f"{b.memory:.0f} ({a.memory / b.memory:.2f}×)"])
        )
    lines += ["", f"`irrun --help` takes {help_time * 1e3:.0f} ms; target: {HELP_MS} ms."]
    for name, entries in decoders.items():
        lines += ["", f"## Decoding with state: {name}, 1 thread", "", row(["tokens before", "irload ms a token"])]
        lines += [row(["---:", "---:"])]
        lines += [row([str(e.tokens), f"{e.ms:.2f}"]) for e in entries]
    missing = [p for p in PEERS if not find_spec(PEERS[p].module)]
    if missing:
        lines += ["", f"Not installed: {', '.join(missing)} (`pip install -e '.[bench]'`)."]
    return "\n".join(lines) + "\n"


def workload_lines(runs: dict[int, dict[str, tuple[str, dict[str, dict[str, float]]]]]) -> list[str]:
    """Return two tables for each workload: irload's values, and in brackets their ratio to OpenVINO's."""
    lines: list[str] = []
    for threads, models in runs.items():
        for kind in dict.fromkeys(kind for kind, _ in models.values()):
            rows = {name: peers for name, (own, peers) in models.items() if own == kind}
            for peer, baseline in baselines().items():
                if not PEERS[peer].in_workloads:
                    continue
                names = list(next(iter(rows.values()))[peer])
                title = f"{kind.capitalize()}, {threads} thread{'s' if threads > 1 else ''}: {peer} over {baseline}"
                lines += ["", f"## {title}", ""]
                lines += [row(["model", *names]), row(["---", *["---:"] * len(names)])]
                for name, peers in rows.items():
                    pairs = [(peers[peer][key], peers[baseline][key]) for key in names]
                    lines.append(row([name, *(f"{a:.3g} ({a / b:.2f}×)" for a, b in pairs)]))
    return lines


def beside_lines(beside: dict[str, Latencies]) -> list[str]:
    """Return the table of latencies beside one busy process."""
    names = [name for name, peer in PEERS.items() if peer.beside_busy]
    lines = ["", "## Beside one busy process, 2 threads", "", row(["model", *names])]
    lines.append(row(["---", *["---:"] * len(names)]))
    return lines + [row([name, *(cell(one, peer) for peer in names)]) for name, one in beside.items()]


def cell(one: Latencies, peer: str) -> str:
    """Return the time of a peer, for irload with the ratio to its baseline."""
    if peer not in one.ms:
        return "–"
    baseline = one.ms.get(PEERS[peer].baseline)
    return f"{one.ms[peer]:.3g}" + (f" ({one.ms[peer] / baseline:.2f}×)" if baseline else "")


def baselines() -> dict[str, str]:
    """Return the ways to run irload, each with the peer that it is compared with."""
    return {name: peer.baseline for name, peer in PEERS.items() if peer.baseline}


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def target() -> str:
    """Return the instruction set of compiled kernels."""
    from irload.plan.backends.llvm.target import host_target

    found = host_target()
    return "unsupported processor" if found is None else found.name


def versions() -> list[str]:
    shown: list[str] = []
    for package in ("irload", "numpy", "llvmlite", "openvino", "onnxruntime", "torch", "onnx"):
        try:
            shown.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            shown.append(f"{package} not installed")
    return shown


def processor() -> str:
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="replace")
    except OSError:
        return platform.processor() or platform.machine()
    return next((line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith("model name")), "?")


if __name__ == "__main__":
    main()
