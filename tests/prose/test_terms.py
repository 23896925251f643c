"""The scan of the prose: the texts that it reads, the phrases that it reports, and that their number only falls."""

from __future__ import annotations

import pytest

from tests.prose.old_places import LIST, counted, grown, listed
from tests.prose.terms import PAGE, hits, load, page
from tests.prose.texts import Text, texts

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


def test_old_places_only_shrink():
    old, new = listed(LIST.read_text(encoding="utf-8")), counted()
    more = {path: count for path, count in new.items() if count > old.get(path, 0)}
    assert more == {}, "forbidden phrases: `python -m tests.prose FILE` shows them"
    assert new == old, "the list counts phrases that were rewritten: run `python -m tests.prose`"


def test_a_conflict_in_the_list_takes_the_lower_count():
    text = "# head\n<<<<<<< ours\n  3 a.py\n=======\n  2 a.py\n>>>>>>> theirs\n  1 b.py\n"
    assert listed(text) == {"a.py": 2, "b.py": 1}


def test_counts_grow_by_renaming_alone():
    assert grown({"README.md": 2}, {"README.md": 3}) == {"README.md": 3}
    assert grown({"README.md": 2}, {"README.md": 2, "new.md": 1}) == {"new.md": 1}
    assert grown({"README.md": 2, "removed.md": 1}, {"README.md": 2, "new.md": 1}) == {}
    assert grown({"README.md": 2, "removed.md": 1}, {"README.md": 3}) == {"README.md": 3}
