"""A condition that may hold for a while, and must not hold for longer than the grace."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from rig.analysis.firsts import Firsts
from rig.analysis.symptoms.calm import Calm

MAX_KEPT: Final = 50


@dataclass(frozen=True, slots=True)
class Lasted:
    from_t: float
    to_t: float
    text: str


@dataclass
class Lasting:
    """Tell it, whenever it may have changed, whether the condition holds, and in which words; and before any strike.

    `judged` counts the looks at which it was calm for long enough to say that it did not hold.
    """

    calm: Calm
    judged: int = 0
    _told: bool = False
    found: list[Lasted] = field(default_factory=lambda: Firsts[Lasted](MAX_KEPT))
    _since: dict[str, tuple[float, str]] = field(default_factory=dict[str, tuple[float, str]])

    def tell(self, now: float, holds: dict[str, str]) -> None:
        """`holds`: what holds now, key → words."""
        self.look(now)
        self._told = True
        for key in [key for key in self._since if key not in holds]:
            del self._since[key]
        for key, text in holds.items():
            since_t, _ = self._since.get(key, (now, text))
            self._since[key] = (since_t, text)

    def look(self, *times: float) -> None:
        """Time has passed, and nothing has changed at any of these moments, which rise: note what has lasted too long
        by the last (each once)."""
        if not self._since:
            self.judged += self.calm.count(times) if self._told else 0
            return
        now = times[-1]
        for since_t, text in self._since.values():
            if self.calm.lasting(since_t, now) <= 0.0:
                continue
            index = next((i for i, one in enumerate(self.found) if one.from_t == since_t and one.text == text), None)
            one = Lasted(since_t, now, text)
            if index is not None:
                self.found[index] = one
            else:
                self.found.append(one)
