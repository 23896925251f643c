"""Writes docs/rules.md from the registry of rules: every rule of `irrun check`, its reason and an example.

python docs/make_rules.py
"""

from __future__ import annotations

from pathlib import Path

from irload.checks import Rule, all_rules
from irload.checks.rule import CATEGORIES

HERE = Path(__file__).parent

INTRODUCTION = """\
# Rules of irrun check

Written by `python docs/make_rules.py` from the rules; a test checks that the page is current. `irrun check --explain
IR401` shows one of them, `--rules` lists them.

Codes are stable: a code never changes its meaning. An **error** is a fault: the file does not load, or a declaration in
it is false. A **warning** is probably a mistake, but the file loads. A **note** is information; the report only counts
notes unless `--notes` is given. `--strict` makes warnings count as errors.

Each fault is reported once, where it arises, and not again at layers whose declarations follow from it.
"""


def page() -> str:
    """The text of the page."""
    parts = [INTRODUCTION]
    for digit, category in CATEGORIES.items():
        rules = [r for r in all_rules() if r.code[2] == digit]
        parts.append(f"## IR{digit}xx: {category}\n")
        parts += [_entry(r) for r in rules]
    return "\n".join(parts)


def _entry(rule: Rule) -> str:
    paragraphs = "\n\n".join(p.replace("\n", " ") for p in rule.text.split("\n\n"))
    return f"### {rule.code} {rule.title}\n\n*{rule.severity}* · {paragraphs}\n\nExample: {rule.example}\n"


if __name__ == "__main__":
    (HERE / "rules.md").write_text(page(), encoding="utf-8", newline="\n")
