"""`irrun cache`: shows or clears the user's cache."""

from __future__ import annotations

from typing import Any

import click

from irrun.arguments import json_option


@click.command("cache")
@click.option("--clear", is_flag=True, help="Remove all entries.")
@json_option
def command(clear: bool, as_json: bool) -> int:
    r"""Show the contents of the user's cache: compiled kernels, compiled models, results of --tune.

    irload recreates every entry on demand. IRLOAD_CACHE_DIR sets another folder.

    \b
      irrun cache
      irrun cache --clear
    """
    from irload.diagnostics.user_cache import cache_usage, clear_cache
    from irload.system.machine import cache_folder
    from irrun.render import safe, show_json, size_text, stdout, table

    before = clear_cache() if clear else []
    entries = cache_usage()
    removed = sum(entry.nbytes for entry in before) - sum(entry.nbytes for entry in entries) if clear else 0
    document: dict[str, Any] = {
        "entries": [
            {"what": entry.what, "path": str(entry.path), "count": entry.count, "bytes": entry.nbytes}
            for entry in entries
        ],
        "cleared": clear,
        "removed_bytes": max(removed, 0),
    }
    if as_json:
        show_json(document)
        return 0
    shown = table("", "files", "size", "name", right=("files", "size"))
    for entry in entries:
        shown.add_row(entry.what, f"{entry.count:,}", size_text(entry.nbytes), safe(entry.path.name))
    stdout().print(shown)
    stdout().print(f"in {safe(cache_folder())}", soft_wrap=True)
    if clear:
        stdout().print(f"removed {size_text(document['removed_bytes'])}")
    return 0
