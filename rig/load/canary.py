"""Canaries: requests of the load whose answer is known, so that another answer after a fault can be noticed. Pure.

A canary is one of few fixed prompts, asked greedily (temperature 0, a seed) for a fixed number of tokens. At the
beginning of a load every request is a canary until each model was asked each of them often enough, streamed and not,
through each entry node; from then on a share of the requests is (`canaries` of the workload).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, Literal

from rig.config.workload import Workload

MAX_TOKENS: Final = 24
LEAST_ASKED: Final = 3
"""Each is asked so often of each model in either form, and at least once through each entry node, before anything else
is: one after the other, so that some are known where there is not the time for all."""
MOST_TEXTS: Final = 64
"""Different answers to one canary whose text is journalled; of further ones only the hash."""
MOST_CHARACTERS: Final = 8192
"""Of a text that is journalled; no sound answer of so few tokens comes near it."""


@dataclass(frozen=True, slots=True)
class Canary:
    name: str
    prompt: str
    mode: Literal["text", "json", "tools"] = "text"

    def fields(self) -> dict[str, Any]:
        """What its request has beside the usual ones."""
        fields: dict[str, Any] = {"temperature": 0, "seed": 0}
        if self.mode == "json":
            fields["response_format"] = {"type": "json_object"}
        elif self.mode == "tools":
            fields["tools"] = [_TOOL]
        return fields


_TOOL: Final[dict[str, Any]] = {
    "type": "function",
    "function": {
        "name": "weather",
        "description": "The weather in a city.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
        },
    },
}
CANARIES: Final = (
    Canary("numbers", "Write the numbers from one to thirty as English words, separated by commas."),
    Canary("alphabet", "Write the letters of the Greek alphabet by their names, in order, separated by commas."),
    Canary("river", "Tell a story about a river that flows through seven towns. Begin with its source."),
    Canary("colours", "Zähle zwölf Farben auf, jede mit einem Gegenstand, der diese Farbe hat."),
)
_MODES: Final = {
    "json": Canary("json", 'Answer with the JSON object {"sound": true} and nothing else.', "json"),
    "tools": Canary("tools", "Call the tool for the weather in Oslo.", "tools"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A canary that is to be asked. `entry` counts on, over all entry nodes."""

    canary: Canary
    model: str
    streamed: bool
    entry: int


class CanaryTurns:
    """Which requests of a load are canaries, and which: each combination in turn, whoever asks."""

    def __init__(self, workload: Workload, entries: int) -> None:
        share = workload.streamed_share
        forms = [True] * (share > 0) + [False] * (share < 1)
        canaries = [*CANARIES, *(_MODES[mode] for mode in workload.canary_modes)]
        models = list(dict.fromkeys(model.model for model in workload.models))
        self._combinations = [(canary, model, form) for canary in canaries for model in models for form in forms]
        self._share = workload.canaries
        self._at_first = max(LEAST_ASKED, entries)
        self._learning = self._at_first * len(self._combinations) if self._share else 0
        self._asked = 0

    def due(self, rng: Random) -> bool:
        """Whether the next request is a canary."""
        return self._asked < self._learning or rng.random() < self._share

    def next(self) -> Asked:
        if self._asked < self._learning:
            place, turn = divmod(self._asked, self._at_first)
        else:
            turn, place = divmod(self._asked, len(self._combinations))
        self._asked += 1
        canary, model, streamed = self._combinations[place]
        return Asked(canary, model, streamed, turn + place)

    def alone(self) -> Iterator[Asked]:
        """Each combination once, to be asked with nothing beside it."""
        if self._share:
            for place, (canary, model, streamed) in enumerate(self._combinations):
                yield Asked(canary, model, streamed, place)


def digest_of(text: str) -> str:
    return hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


class Texts:
    """Which answers the journal has already."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str, bool], set[str]] = {}

    def new(self, asked: tuple[str, str, bool], digest: str, pieces: Sequence[str]) -> list[str]:
        """What of this answer is to be journalled: all, where it is not known, else nothing."""
        known = self._known.setdefault(asked, set())
        if digest in known or len(known) >= MOST_TEXTS:
            return []
        known.add(digest)
        kept: list[str] = []
        room = MOST_CHARACTERS
        for piece in pieces:
            kept.append(piece[:room])
            room -= len(kept[-1])
            if room <= 0:
                break
        return kept
