"""Commit subjects. `python -m tests.prose.subject FILE` checks the subject of a commit message, as the hook does."""

from __future__ import annotations

import re
import sys
from pathlib import Path

LIMIT = 72
GIT = re.compile(r"(Merge|Revert|fixup!|squash!|amend!) ")
"""Subjects that git writes."""
FORM = re.compile(r"(?P<area>[\w./*-]+(, [\w./*-]+)*): (?P<first>\S+)( .*)?")
ENDINGS = re.compile(r"(?i)[a-z]{2,}(ed|ing|[^s]s)")
IMPERATIVE = re.compile(
    r"(?i)alias|bias|bring|canvas|embed|exceed|feed|focus|need|ping|proceed|seed|shed|speed|spring|string|succeed"
)
"""Imperatives that end in -s, -ed or -ing."""
OTHER = re.compile(
    r"(?i)a|all|also|an|and|any|are|as|at|both|by|each|every|few|for|from|if|in|is|it|its|less|many|more|most|new|no|not"
    r"|nothing|of|on|one|only|or|other|same|several|so|some|such|than|that|the|their|then|there|these|they|this|those"
    r"|three|to|two|what|when|where|whether|which|while|who|with"
)
"""Words that begin a clause or a noun phrase."""
CONJUNCTION = re.compile(r" (after|as|because|before|how|if|once|that|unless|until|when|where|which|while|whose)\b")
FINITE = re.compile(r" (is|are|was|were|has) ")
"""Verbs of a statement, when no conjunction precedes them."""


def complaint(subject: str) -> str | None:
    """The reason to reject a subject, None for an acceptable one."""
    if GIT.match(subject):
        return None
    if len(subject) > LIMIT:
        return f"the subject has {len(subject)} characters, at most {LIMIT} are allowed"
    parts = FORM.fullmatch(subject)
    if parts is None:
        return "the subject must be `area: imperative …`, for example “cli/completion: quote layer names”"
    first = parts["first"]
    if OTHER.fullmatch(first) or (ENDINGS.fullmatch(first) and not IMPERATIVE.fullmatch(first)):
        return f"the subject must begin with an imperative after “{parts['area']}: ”, found “{first}”"
    if FINITE.search(CONJUNCTION.split(subject)[0]):
        return "the subject must be an imperative, found a statement"
    return "the subject must not end with a period" if subject.endswith(".") else None


def main(path: str) -> int:
    subject = Path(path).read_text(encoding="utf-8").partition("\n")[0]
    if reason := complaint(subject):
        print(f"{subject}\n{reason}", file=sys.stderr)
    return int(reason is not None)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
