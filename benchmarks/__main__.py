"""`make bench`: irload beside OpenVINO and others on the same models; writes benchmarks/RESULTS.md."""

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

from benchmarks.decoder import Decoder, decoder
from benchmarks.measure import Latencies, Start, help_seconds, latencies, start
from benchmarks.worker import PEERS

HERE = Path(__file__).parent
ROOT = HERE.parent
BUILT = HERE / ".models"
HELP_MS = 150
"""What `irrun --help` may take, on a machine with nothing else to do."""
ARCHITECTURES = ("resnet50", "mobilenet_v2", "vgg11", "bert_base")
MODULES = {
    "irload": "irload",
    "OpenVINO": "openvino",
    "ONNX Runtime": "onnxruntime",
    "torch": "torch",
    "onnx.reference": "onnx",
}


def main() -> None:
    arguments = parse()
    peers = [p for p in PEERS if find_spec(MODULES[p])]
    folders = prepared() + given(arguments.models) + sorted(p.parent for p in (ROOT / "models").glob("*/model.xml"))
    if arguments.only:
        folders = [f for f in folders if any(word in f.name for word in arguments.only)]
    found: dict[int, dict[str, Latencies]] = {}
    for threads in arguments.threads:
        for folder in folders:
            names = [p for p in peers if p in ("irload", "OpenVINO") or able(p, folder)]
            found.setdefault(threads, {})[folder.name] = measured = latencies(names, folder, threads, arguments.rounds)
            print(folder.name, threads, {k: round(v, 3) for k, v in measured.ms.items()}, flush=True)
    starts: dict[str, dict[str, Start]] = {}
    decoders: dict[str, list[Decoder]] = {}
    for folder in folders:
        try:
            starts[folder.name] = start(folder, 1, max(3, arguments.rounds // 3))
        except RuntimeError as error:
            print(error, file=sys.stderr)
        if "decoder" in folder.name:
            decoders[folder.name] = decoder(folder)
    text = report(arguments.rounds, found, starts, decoders, help_seconds(arguments.rounds))
    arguments.out.write_text(text, encoding="utf-8")
    print(f"wrote {arguments.out}")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=Path, help="a folder of folders with model.xml, model.bin and in_*.npy")
    parser.add_argument("--only", action="append", help="models whose name holds this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--threads", type=lambda text: [int(t) for t in text.split(",")], default=[1, 2])
    parser.add_argument("--out", type=Path, default=HERE / "RESULTS.md")
    return parser.parse_args()


def prepared() -> list[Path]:
    """The architectures of benchmarks/peers, made on first need; none without torch and onnx."""
    folders: list[Path] = []
    for name in ARCHITECTURES if find_spec("torch") and find_spec("onnx") else ():
        command = [sys.executable, "-m", "benchmarks.prepare", str(BUILT / name), name]
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
        if done.returncode:
            print(f"{name} could not be made: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr)
        else:
            folders.append(BUILT / name)
    return folders


def given(folder: Path | None) -> list[Path]:
    return [] if folder is None else sorted(p.parent for p in folder.glob("*/model.xml"))


def able(peer: str, folder: Path) -> bool:
    """True where the peer has the model in a form that it takes."""
    return folder.name in ARCHITECTURES if peer == "torch" else (folder / "model.onnx").exists()


def report(
    rounds: int,
    found: dict[int, dict[str, Latencies]],
    starts: dict[str, dict[str, Start]],
    decoders: dict[str, list[Decoder]],
    help_time: float,
) -> str:
    lines = ["# Benchmarks", "", "Written by `make bench`. Times are medians; ×: irload's time over the peer's, "]
    lines[-1] += "so below 1 irload is faster."
    lines += [
        "",
        f"- {processor()}, {os.cpu_count()} processors, {platform.system()}, Python {platform.python_version()}",
    ]
    lines += [
        f"- {', '.join(versions())}",
        f"- f32, batch as in the input; {rounds} rounds in which the peers take turns, ",
    ]
    lines[-1] += "each in a process of its own. OpenVINO: CPU, f32, LATENCY, one stream, no dynamic quantization."
    for threads, rows in found.items():
        lines += ["", f"## Latency, {threads} thread{'s' if threads > 1 else ''}", ""]
        others = [p for p in PEERS if p != "irload"]
        lines += [row(["model", "irload ms", *(f"{p} ms ×" for p in others), "difference"])]
        lines += [row(["---", *["---:"] * (len(others) + 2)])]
        for name, one in rows.items():
            mine = one.ms.get("irload")
            cells = [f"{one.ms[p]:.3g} ({mine / one.ms[p]:.2f}×)" if mine and p in one.ms else "–" for p in others]
            off = one.difference.get("irload")
            shown = [f"{mine:.3g}" if mine else "failed", *cells, "–" if off is None else f"{off:.0e}"]
            lines.append(row([name, *shown]))
        for peer in others:
            ratios = [o.ms["irload"] / o.ms[peer] for o in rows.values() if peer in o.ms and "irload" in o.ms]
            if ratios:
                mean = math.exp(sum(map(math.log, ratios)) / len(ratios))
                lines += ["", f"Geometric mean over {peer}: {mean:.2f}× ({len(ratios)} of {len(rows)} models)."]
    lines += ["", "## From the start of the process to the first result, 1 thread", ""]
    lines += [row(["model", "irrun s", "OpenVINO s ×", "irrun peak MiB", "OpenVINO peak MiB ×"])]
    lines += [row(["---", "---:", "---:", "---:", "---:"])]
    for name, one in starts.items():
        a, b = one["irload"], one["OpenVINO"]
        seconds = f"{b.seconds:.2f} ({a.seconds / b.seconds:.2f}×)"
        lines.append(
            row([name, f"{a.seconds:.2f}", seconds, f"{a.memory:.0f}", f"{b.memory:.0f} ({a.memory / b.memory:.2f}×)"])
        )
    lines += ["", f"`irrun --help` takes {help_time * 1e3:.0f} ms, of {HELP_MS} that it may take."]
    for name, entries in decoders.items():
        lines += ["", f"## Decoding with state: {name}, 1 thread", "", row(["tokens before", "irload ms a token"])]
        lines += [row(["---:", "---:"])]
        lines += [row([str(e.tokens), f"{e.ms:.2f}"]) for e in entries]
    missing = [p for p in PEERS if not find_spec(MODULES[p])]
    if missing:
        lines += ["", f"Not installed: {', '.join(missing)} (`pip install -e '.[bench]'`)."]
    return "\n".join(lines) + "\n"


def row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def versions() -> list[str]:
    shown: list[str] = []
    for package in ("irload", "numpy", "openvino", "onnxruntime", "torch", "onnx"):
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
