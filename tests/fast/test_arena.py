"""Tests of fast/arena.pyx: it places buffers as the course's `place` does, and correctly when its search
budget is used up.
"""
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from flowedu.core.graph import memory
from flowedu.core.graph.memory import Buffer, lower_bound, rounded
from flowedu.fast.arena import place
from flowedu.swap import swapped

KINDS = st.sampled_from(["temp", "temp", "temp", "scratch", "variable"])
BUFFERS = st.lists(st.tuples(st.integers(0, 5000), st.integers(0, 20), st.integers(0, 20), KINDS),
                   max_size=60)


def make_buffers(lifetimes) -> list[Buffer]:
    return [Buffer(str(i), kind, n, first=a, last=a + d) for i, (n, a, d, kind) in enumerate(lifetimes)]


def assert_no_overlap(buffers: list[Buffer], size: int) -> None:
    """Check that buffers alive at the same step do not overlap and that all are inside the arena."""
    inside = sorted((b for b in buffers if b.in_arena), key=lambda b: b.offset)
    assert all(b.offset == -1 for b in buffers if not b.in_arena)
    for i, a in enumerate(inside):
        end = a.offset + rounded(a.nbytes)
        assert a.offset % 64 == 0 and a.offset >= 0 and end <= size
        for b in inside[i + 1:]:
            if b.offset >= end:
                break
            assert b.last < a.first or a.last < b.first, (a, b)


@given(BUFFERS)
def test_offsets_match_the_course(lifetimes):
    mine, theirs = make_buffers(lifetimes), make_buffers(lifetimes)
    assert place(mine) == memory.place(theirs)
    assert [b.offset for b in mine] == [b.offset for b in theirs]


@given(BUFFERS, st.integers(0, 20))
def test_plans_are_valid_when_the_budget_is_used_up(lifetimes, budget):
    buffers = make_buffers(lifetimes)
    size = place(buffers, budget)
    assert_no_overlap(buffers, size)
    assert size >= lower_bound(buffers, 41)


def training(n: int, rng: random.Random) -> list[Buffer]:
    """Return the buffers that n layers store for the backward pass, and their gradients."""
    sizes = [rng.choice([64, 4096, 4096, 10_000, 1 << 20]) for _ in range(n)]
    return make_buffers([(size, i, 2 * (n - i), "temp") for i, size in enumerate(sizes)] +
                        [(size, 2 * n - i, 1, "temp") for i, size in enumerate(sizes)])


def in_turn(n: int, rng: random.Random) -> list[Buffer]:
    """Return n buffers, each of which is read by the next step only."""
    return make_buffers([(4096 * rng.randint(1, 3), i, 1, "temp") for i in range(n)])


def mixed(n: int, rng: random.Random) -> list[Buffer]:
    return make_buffers([(rng.choice([64, 1000, 4096, 100_000]) * rng.randint(1, 6), rng.randint(0, n),
                          rng.randint(0, 30), "temp")
                         for _ in range(n)])


@pytest.mark.parametrize("many", [training, in_turn, mixed], ids=lambda f: f.__name__)
def test_large_plans_are_nearly_optimal(many):
    """This also holds with a budget for a few buffers only."""
    buffers = many(2000, random.Random(0))
    bound = lower_bound(buffers, 5000)
    for budget in (2000, 200, 10, 0):
        size = place(buffers, budget)
        assert_no_overlap(buffers, size)
        assert size <= 1.35 * bound, budget


def test_an_answer_to_the_exercise_replaces_the_library_function():
    buffers = make_buffers([(64, 0, 1, "temp"), (64, 5, 1, "temp")])

    def mine(buffers):
        for i, b in enumerate(buffers):
            b.offset = 640 * i
        return 6400

    assert place(buffers) == 64
    with swapped(memory.place, mine):
        assert place(buffers) == 6400 and buffers[1].offset == 640
    assert place(buffers) == 64
