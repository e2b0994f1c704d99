"""Which node is master, by the last word of each node's log. Pure.

A claim alone is weak: every node claims at its start, until it hears of an election, and after a split two may. So what
most nodes have elected counts; else the claim that has stood for longest, once it has stood for a while; else nobody
knows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

SETTLED_S: Final = 10.0
"""A claim that no majority backs is believed after so long: a node that has just started claims for some 3 s, longer
under load."""


@dataclass(frozen=True)
class Word:
    """The last word of a node's log: it claims to be master itself, or it names the node id that was elected. Neither:
    it says nothing, or could not be asked.

    `claimed_s` is for how long it has claimed without a break; None: not known.
    """

    node: str
    claims: bool
    elected: str = ""
    claimed_s: float | None = None


@dataclass(frozen=True)
class Ruling:
    """`master` is None when it is unknown: then `reason` says why. Else `reason` says what was odd, if anything."""

    master: str | None
    reason: str = ""


def rule(words: Sequence[Word], node_of: Mapping[str, str]) -> Ruling:
    """`node_of` maps the node ids of the processes that run now to the names in `words`."""
    claims = [word for word in words if word.claims]
    if not claims:
        return Ruling(None, "no node claims to be master")
    named = ", ".join(f"{word.node}{_for(word)}" for word in claims)
    several = f"{named} claim to be master" if len(claims) > 1 else ""
    votes = [word.node if word.claims else node_of.get(word.elected, "") for word in words]
    most, count = Counter(votes).most_common(1)[0]
    if 2 * count > len(votes) and most in {word.node for word in claims}:
        return Ruling(most, several and f"{several}; most nodes have elected {most}")
    settled = [word for word in claims if word.claimed_s is None or word.claimed_s >= SETTLED_S]
    if len(settled) == 1:
        return Ruling(settled[0].node, several and f"{several}; only {settled[0].node} not since just now")
    ages = sorted(((word.claimed_s, word.node) for word in settled if word.claimed_s is not None), reverse=True)
    if len(ages) == len(settled) > 1 and ages[0][0] > ages[1][0]:
        return Ruling(ages[0][1], f"{several}; {ages[0][1]} for longest")
    return Ruling(None, f"{several or f'{named} claims to be master'}, and most nodes have not elected one of them")


def _for(word: Word) -> str:
    return "" if word.claimed_s is None else f" (for {word.claimed_s:.0f} s)"
