"""Completion scripts and their protocol: layer names reach the command line as single literal words."""

from __future__ import annotations

import os
import re
import shlex
from typing import Any

from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ShellComplete,
    ZshComplete,
    add_completion_class,
    get_completion_class,
    split_arg_string,
)

from irload.wording import printable

CURRENT = "IRRUN_COMP_CURRENT"
"""Environment variable of our bash script: the text that readline replaces."""
_SPECIAL = re.compile(r"[^\w./+,%-]")
"""Special characters of shells, and the characters at which readline splits words (`:`, `=`, `@`)."""
_UNSAFE = re.compile(r"[^\w./+,%:=@-]|^=")

_BASH = """\
%(complete_func)s() {
    local IFS=$'\\n' line
    COMPREPLY=()
    while read -r line; do
        case $line in
            dir,*) compopt -o dirnames ;;
            file,*) compopt -o default ;;
            plain,*) COMPREPLY+=("${line#plain,}") ;;
        esac
    done < <(env COMP_WORDS="${COMP_LINE:0:COMP_POINT}" IRRUN_COMP_CURRENT="$2" \
%(complete_var)s=bash_complete "$1")
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


def is_plain(value: str) -> bool:
    """True for a value that is one literal word in every shell without quotes."""
    return not _UNSAFE.search(value)


class _Printable(ShellComplete):
    """A completion without control characters, which separate the entries of the protocol."""

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        items: list[CompletionItem[Any]] = []
        for item in super().get_completions(args, incomplete):
            if item.type != "plain" or (item.value.isprintable() and self.offers(item.value)):
                item.help = item.help and printable(item.help)
                items.append(item)
        return items

    def offers(self, value: str) -> bool:
        """Return True if the completion script inserts this value literally."""
        return is_plain(value)


class _Bash(_Printable, BashComplete):
    """bash inserts values unchanged, so special characters are escaped by a backslash.

    The script of click, which users may have saved, strips backslashes, so it receives plain values only. A word with
    an open quote is also completed by plain values only, because a backslash in it would be literal.
    """

    source_template = _BASH

    def get_completion_args(self) -> tuple[list[str], str]:
        if CURRENT not in os.environ:
            return super().get_completion_args()
        words = _words(os.environ["COMP_WORDS"])
        return words[1:-1], words[-1]

    def get_completions(self, args: list[str], incomplete: str) -> list[CompletionItem[Any]]:
        items = super().get_completions(args, incomplete)
        if CURRENT not in os.environ:
            return items
        line, current = os.environ["COMP_WORDS"], os.environ[CURRENT]
        quoted = _in_quotes(line)
        before = _words(line.removesuffix(current))[-1]  # the word's part before a `:` or `=` at which bash splits
        for item in items:
            if item.type == "plain":
                rest = item.value.removeprefix(before)
                item.value = rest if quoted else _SPECIAL.sub(r"\\\g<0>", rest)
        return items

    def offers(self, value: str) -> bool:
        return is_plain(value) or (CURRENT in os.environ and not _in_quotes(os.environ["COMP_WORDS"]))


class _Zsh(_Printable, ZshComplete):
    """zsh quotes inserted values, except that `_describe` interprets backslashes."""

    def offers(self, value: str) -> bool:
        return "\\" not in value


class _Fish(_Printable, FishComplete):
    """fish quotes inserted values. The script of click would truncate values at a comma."""

    source_template = FishComplete.source_template.replace('string split ","', 'string split -m 1 ","')

    def offers(self, value: str) -> bool:
        return True


def register() -> None:
    """Register these classes with click. Other shells that click supports receive plain values only."""
    for shell in (_Bash, _Zsh, _Fish):
        add_completion_class(shell)
    other = get_completion_class("powershell")
    if other is not None:
        add_completion_class(type("_PowerShell", (_Printable, other), {}))


def _words(line: str) -> list[str]:
    """Return the words of the line up to the cursor, unquoted; the last one is empty after a blank."""
    words = split_arg_string(f"{line}x")
    return [*words[:-1], words[-1][:-1]]


def _in_quotes(line: str) -> bool:
    try:
        shlex.split(f"{line}x")
    except ValueError:
        return True
    return False
