"""How an altered answer differs, on literal texts."""

from __future__ import annotations

import pytest

from rig.analysis.answers.difference import Difference, How, difference

EXPECTED = ["One", ",", " two", ",", " three", ",", " four", ",", " five", "."]
OTHERS = {"river": "The river rises in the hills, and flows to the sea."}


@pytest.mark.parametrize(
    ("got", "how", "token", "detail"),
    [
        (["The river rises in the hills, and flows to the sea."], "swapped", 1, "the answer to river"),
        ([*EXPECTED[:4], " flows to the sea."], "swapped", 5, "the answer to river"),
        ([*EXPECTED[:4], *EXPECTED[6:]], "shifted", 5, "' three,' is missing"),
        ([*EXPECTED[:8], EXPECTED[9]], "shifted", 9, "' five' is missing"),
        ([*EXPECTED[:5], *EXPECTED[4:]], "repeated", 6, "' three' came twice"),
        ([*EXPECTED, "."], "repeated", 11, "'.' came twice"),
        (EXPECTED[:7], "cut", 8, "7 characters are missing at its end"),
        ([], "cut", 1, "28 characters are missing at its end"),
        ([*EXPECTED[:4], " 3, 4, 5."], "other", 5, "' 3, 4, 5.' instead of ' three, four, five.'"),
        (["Eins, zwei."], "other", 1, "'Eins, zwei.' instead of 'One, two, three, four, five.'"),
    ],
)
def test_how(got: list[str], how: How, token: int, detail: str) -> None:
    found = difference(EXPECTED, got, OTHERS)
    assert (found.how, found.token, found.detail) == (how, token, detail)


def test_where_nothing_was_streamed_tokens_are_those_of_the_other_side() -> None:
    assert difference(["abcdef"], ["ab", "c", "X"], {}) == Difference("other", 3, 3, "'X' instead of 'def'")


def test_a_short_likeness_is_no_cross_talk() -> None:
    assert difference(["One, two."], ["One, hills,"], OTHERS).how == "other"


def test_what_both_answers_have_in_common_is_no_cross_talk() -> None:
    others = {"song": "la la la la la la"}
    assert difference(["do", " re", " la la la la la"], ["do", " mi", " la la la la"], others).how == "other"
    assert difference(["do", " re", " la la la la la"], ["do", " la la la la la"], others).how == "shifted"
