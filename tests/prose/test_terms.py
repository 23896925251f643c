"""The scan of the prose: the texts that it reads, the phrases that it reports, and that their number only falls."""

from __future__ import annotations

import pytest

from tests.prose.terms import PAGE, hits, load, page, reported
from tests.prose.texts import FOLDERS, Text, files, texts

TERMS = load()


@pytest.mark.parametrize("term", TERMS, ids=lambda term: term.say)
def test_examples_follow_the_table(term):
    rule = [term]
    assert hits([Text(1, term.before)], rule), "the phrase must be in the sentence before"
    assert hits([Text(1, term.after)], TERMS) == []


@pytest.mark.parametrize(
    "sentence",
    [
        "axis must be in [-2, 1], found 3",
        "model.xml not found",
        "N stands for the batch size.",
        "A stand-alone IR; the buffer is overwritten in place.",
        "Rounds to 3 decimal places, off by a unit in the last place.",
        "no such file: model.xml",
        "Types such as f16 and bf16 are widened.",
        "There is no bias. The value is no longer alive.",
        "Whether None is returned; nothing is None.",
        "The thread owns its scratch buffer.",
    ],
)
def test_plain_sentences_are_not_reported(sentence):
    assert hits([Text(1, sentence)], TERMS) == []


SOURCE = '''"""The first line.

It asks `told` for own data.
"""

found = own = kept = 1  # what comes
# behind
# each other

def ask(told):
    """Stands
    here."""
    raise ValueError(f"no {told} is gone " "anew", "two things", 'things of {}')
    message = f"{own}"
'''


def test_phrases_of_docstrings_comments_and_messages_with_their_lines():
    reported = [(hit.line, hit.phrase) for hit in hits(texts("irload/a.py", SOURCE), TERMS)]
    assert reported == [
        (3, "asks"),
        (3, "own"),
        (6, "what comes"),
        (7, "behind each other"),
        (11, "Stands"),
        (13, "anew"),
        (13, "gone"),
        (13, "things"),
        (13, "things"),
    ]


def test_strings_of_tests_are_data():
    assert [hit.line for hit in hits(texts("tests/test_a.py", SOURCE), TERMS)] == [3, 3, 6, 7, 11]


def test_pages_are_read_without_code():
    text = "Ask\n```\nask\n```\nsee [it](told.md) or `own`.\n\n    >>> ask()\nown\n"
    assert [(hit.line, hit.phrase) for hit in hits(texts("docs/a.md", text), TERMS)] == [(1, "Ask"), (8, "own")]


def test_contributing_has_the_table():
    text = PAGE.read_text(encoding="utf-8")
    assert page(text, TERMS) == text, "run `python -m tests.prose`"


@pytest.mark.parametrize("folder", ["", *FOLDERS])
def test_no_file_has_forbidden_phrases(folder):
    paths = [path for path in files() if path.rpartition("/")[0].partition("/")[0] == folder]
    assert paths
    assert reported(paths, TERMS) == []
