"""The arena: buffers that live at the same time never overlap."""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from irload.plan.memory import arena
from irload.plan.memory.arena import ALIGNMENT, MANY, Lifetime, assign_offsets

LIVES = st.lists(
    st.tuples(st.integers(1, 5000), st.integers(0, 20), st.integers(0, 8)).map(
        lambda t: Lifetime(t[0], t[1], t[1] + t[2])
    ),
    max_size=30,
)


@pytest.mark.parametrize("many", [MANY, 0], ids=["by size", "by time"])
@given(LIVES)
def test_no_two_live_buffers_overlap(many: int, lives: list[Lifetime]) -> None:
    with patch.object(arena, "MANY", many):
        offsets, total = assign_offsets(dict(enumerate(lives)))
    for a, life in enumerate(lives):
        assert offsets[a] % ALIGNMENT == 0
        assert 0 <= offsets[a] <= offsets[a] + life.size <= total
        for b, other in enumerate(lives[:a]):
            together = life.first <= other.last and other.first <= life.last
            apart = offsets[a] + life.size <= offsets[b] or offsets[b] + other.size <= offsets[a]
            assert apart or not together


@pytest.mark.parametrize("many", [MANY, 0], ids=["by size", "by time"])
def test_consecutive_buffers_share_an_offset(many: int) -> None:
    with patch.object(arena, "MANY", many):
        _, total = assign_offsets({0: Lifetime(640, 0, 1), 1: Lifetime(640, 2, 3), 2: Lifetime(640, 4, 4)})
    assert total == 640


def test_the_lowest_gap_that_is_large_enough_is_filled() -> None:
    lives = {
        0: Lifetime(64 * 10, 0, 9),
        1: Lifetime(64 * 9, 0, 3),
        2: Lifetime(64 * 8, 0, 9),
        3: Lifetime(64 * 4, 4, 9),
        4: Lifetime(64 * 5, 4, 9),
        5: Lifetime(64 * 3, 4, 9),
    }
    offsets, total = assign_offsets(lives)
    assert [offsets[k] // 64 for k in range(6)] == [0, 10, 19, 15, 10, 27]
    assert total == 64 * 30
