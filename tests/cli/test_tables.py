"""Tables fit a screen, and what is to be copied from them stays whole."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from placeopt.cli.screen import room, table

NAME = "a-policy-with-a-long-name-dqn"


def test_headers_wrap_before_cells() -> None:
    rows = [("one.json", "0.003297", "46"), ("two.json", "0.38", "1,046")]
    assert table(("front", "gap to best known", "points"), rows, width=29).splitlines() == [
        "front     gap to best  points",
        "                known",
        "--------  -----------  ------",
        "one.json     0.003297      46",
        "two.json         0.38   1,046",
    ]


def test_sentences_wrap_between_words_and_names_never() -> None:
    rows = [(NAME, "trained on published semantics, every preference")]
    lines = table(("policy", "trained on"), rows, left=2, text=(1,), width=60).splitlines()
    assert len(lines) == 4 and lines[2].startswith(NAME + "  trained on")
    assert max(map(len, lines)) <= 60


def test_what_is_too_wide_becomes_records() -> None:
    """A line for each cell that says something."""
    rows = [(NAME, "temporal", "", "0.25"), ("x", "all", "rl", "")]
    assert table(("policy", "problem", "extra", "weight"), rows, width=40).splitlines() == [
        NAME,
        "  problem  temporal",
        "  weight   0.25",
        "x",
        "  problem  all",
        "  extra    rl",
    ]


def test_empty_columns_are_left_out() -> None:
    assert table(("a", "b", "c"), [("1", "", "2")]) == "a  c\n-  -\n1  2"


def test_a_name_cannot_command_the_terminal() -> None:
    """Names come from files."""
    text = table(("name",), [("red\x1b[31m\nline\x07",)])
    assert "\x1b" not in text and text.splitlines()[-1] == r"red\x1b[31m\nline\x07"


def test_wide_letters_count_twice() -> None:
    lines = table(("name", "n"), [("東京", "1"), ("abc", "2")]).splitlines()
    assert {room(line) for line in lines} == {7}


WORDS = st.lists(st.text("abc-", min_size=1, max_size=9), max_size=6).map(" ".join)


@given(
    st.lists(st.tuples(WORDS, WORDS, WORDS, WORDS), min_size=1, max_size=4),
    st.integers(40, 100),
)
def test_no_table_is_wider_than_the_screen(rows: list[tuple[str, ...]], width: int) -> None:
    """And every word of it is there, whole."""
    columns = ("name", "what it does", "a long header", "n")
    text = table(columns, rows, text=(1,), width=width)
    widest = max(room(line) for line in text.splitlines())
    longest = max(room(cell) for row in rows for cell in row)
    assert widest <= max(width, longest)
    for row in rows:
        for word in " ".join(row).split():
            assert word in text.split()


@pytest.mark.parametrize("left", [0, 1, 2])
def test_numbers_stand_at_the_right(left: int) -> None:
    lines = table(("name", "value"), [("a", "1"), ("bc", "1000")], left=left).splitlines()
    assert lines[2] == ("   a      1", "a         1", "a     1")[left]
