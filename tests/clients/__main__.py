"""Run libraries that import OpenVINO, unchanged, on irload and on OpenVINO, and compare their outputs.

    python -m tests.clients [NAME…]

Each client has two environments in .venv-clients: NAME-runtime exports the models and computes the expected outputs,
NAME-irload has no OpenVINO. Exits with 1 if a client fails or differs.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from tests.clients.comparing import differences
from tests.clients.environments import Failed, prepared, run
from tests.clients.table import CLIENTS, Client

CHILD = Path(__file__).with_name("child.py")


def main(names: list[str]) -> int:
    unknown = set(names) - {client.name for client in CLIENTS}
    if unknown:
        print(f"unknown clients {sorted(unknown)}; expected some of {[client.name for client in CLIENTS]}")
        return 2
    failed = 0
    for client in CLIENTS:
        if not names or client.name in names:
            try:
                outcome = tried(client)
            except Failed as error:
                outcome = [str(error)]
            print(f"{client.name}: {'failed' if outcome else 'passed'} ({', '.join(client.uses)})", flush=True)
            for line in outcome:
                print(f"    {line}")
            failed += bool(outcome)
    print(f"{len(names or CLIENTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


def tried(client: Client) -> list[str]:
    """The differences between the outputs on irload and on OpenVINO."""
    with tempfile.TemporaryDirectory() as folder:
        models, ours, theirs = (Path(folder) / name for name in ("models", "irload.npz", "runtime.npz"))
        models.mkdir()
        runtime, irload = prepared(client, with_runtime=True), prepared(client, with_runtime=False)
        run(runtime, CHILD.with_name(f"export_{client.name}.py"), models, folder=models)
        script = CHILD.with_name(f"client_{client.name}.py")
        run(runtime, CHILD, script, "runtime", models, theirs, folder=models)
        run(irload, CHILD, script, "irload", models, ours, folder=models)
        return differences(ours, theirs)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
