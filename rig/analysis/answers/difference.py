"""How an answer differs from the one that was expected. Pure, on texts and the pieces in which they came.

| how | when |
|---|---|
| swapped | it is the answer of another canary, or goes on as that one does |
| cut | it is a proper beginning of the expected one |
| shifted | from some token on it goes on as the expected one does later: tokens are missing |
| repeated | from some token on it goes on as the expected one did earlier: tokens came twice |
| other | none of these |
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, Literal, TypeAlias

How: TypeAlias = Literal["swapped", "shifted", "repeated", "cut", "other"]
HOWS: Final[tuple[How, ...]] = ("swapped", "shifted", "repeated", "cut", "other")
LEAST_ALIKE: Final = 8
"""Characters that have to agree before a continuation is taken for that of another place or another answer."""
_SHOWN: Final = 40  # characters


@dataclass(frozen=True, slots=True)
class Difference:
    """`token` is the first that differs, counted from 1; `at` the character before which both are alike."""

    how: How
    token: int
    at: int
    detail: str


def difference(expected: Sequence[str], got: Sequence[str], others: Mapping[str, str]) -> Difference:
    """`expected` and `got` are pieces, a token each where they were streamed; `others` the answers of other canaries by
    name. The texts must differ."""
    wanted, text = "".join(expected), "".join(got)
    at = _alike(wanted, text)
    token = _token(expected if len(expected) > 1 else got, at)
    rest = text[at:]
    for name, other in others.items():
        if text == other or (len(rest) >= LEAST_ALIKE and rest in other and rest not in wanted):
            return Difference("swapped", token, at, f"the answer to {name}")
    if not rest:
        return Difference("cut", token, at, f"{len(wanted) - at} characters are missing at its end")
    if missing := _missing(wanted, at, rest):
        return Difference("shifted", token, at, f"{_shown(wanted[at : at + missing])} is missing")
    if twice := _twice(wanted, at, rest):
        return Difference("repeated", token, at, f"{_shown(rest[:twice])} came twice")
    return Difference("other", token, at, f"{_shown(rest)} instead of {_shown(wanted[at:])}")


def _alike(one: str, other: str) -> int:
    """How many characters both begin with."""
    places = (at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b)
    return next(places, min(len(one), len(other)))


def _token(pieces: Sequence[str], at: int) -> int:
    """Which piece has this character, counted from 1."""
    return 1 + sum(end <= at for end in accumulate(len(piece) for piece in pieces))


def _missing(wanted: str, at: int, rest: str) -> int:
    """How many characters of the expected answer were left out; 0 where nothing says so."""
    return next((count for count in range(1, len(wanted) - at) if _goes_on(wanted[at + count :], rest)), 0)


def _twice(wanted: str, at: int, rest: str) -> int:
    """How many characters came a second time; 0 where nothing says so."""
    return next((count for count in range(1, at + 1) if _goes_on(wanted[at - count :], rest)), 0)


def _goes_on(tail: str, rest: str) -> bool:
    """Whether both are the same to the end, or long enough so that one of them may only have been cut sooner."""
    if tail == rest:
        return True
    alike = _alike(tail, rest)
    return alike >= LEAST_ALIKE and alike in (len(tail), len(rest))


def _shown(text: str) -> str:
    return repr(text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…")
