"""The answers of a run: learnt up to the first strike, judged from then on. Bounded memory, one pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

import msgspec

from rig.analysis.answers.difference import HOWS, Difference, How, difference
from rig.analysis.answers.instances import Placed
from rig.analysis.answers.variants import Asked, Variants
from rig.analysis.firsts import Firsts
from rig.journal.records import (
    AnswerMalformed,
    AnyRecord,
    CanaryAnswered,
    FaultChanged,
    PhaseStarted,
    Reachability,
    ViewChanged,
)

MAX_LISTED: Final = 200
_MOST_KEPT: Final = 1000
_REPLACEMENT: Final = "\ufffd"


@dataclass(frozen=True, slots=True)
class Strike:
    """A fault that struck, the last before an answer."""

    fault: int
    kind: str
    at_t: float


@dataclass(frozen=True, slots=True)
class Altered:
    """An answer of a stable canary that was another one than in calm weather."""

    id: str
    asked: Asked
    entry: str
    started_t: float
    ended_t: float
    instance: str | None  # that served it, as far as it is known; else the one that was listed
    nodes: tuple[str, ...]
    difference: Difference
    strike: Strike | None

    @property
    def how(self) -> How:
        return self.difference.how


@dataclass
class _Since:
    """What was answered since the last strike: through which entry nodes, by which instances, as expected."""

    same: set[tuple[Asked, str, str | None]] = field(default_factory=set[tuple[Asked, str, str | None]])


class AnswerWatch:
    """Feed it every record but those of requests.

    `asked` counts all answers of canaries, `judged` those that came after a strike and whose answer was known;
    `exposed` of these were on their way at a strike. `altered` are the first 200, `how` counts all. `wavering` are
    those that varied although nothing had struck since the same was answered as expected.
    """

    def __init__(self) -> None:
        self.variants: dict[Asked, Variants] = {}
        self.asked = self.judged = self.exposed = 0
        self.altered: list[Altered] = Firsts[Altered](MAX_LISTED)
        self.wavering: list[Altered] = Firsts[Altered](MAX_LISTED)
        self.how: Counter[How] = Counter()
        self.malformed: list[AnswerMalformed] = Firsts[AnswerMalformed](MAX_LISTED)
        self.malformed_count = 0
        self._learning = True
        self._strike: Strike | None = None
        self._since = _Since()
        self._placed = Placed()
        self._differences: dict[tuple[Asked, str], Difference] = {}

    def feed(self, record: AnyRecord) -> None:
        match record:
            case CanaryAnswered():
                self._answered(record)
            case AnswerMalformed():
                self.malformed_count += 1
                self.malformed.append(record)
            case FaultChanged(state="struck"):
                self._learning, self._since = False, _Since()
                self._strike = Strike(record.fault, record.fault_kind, record.at_t)
            case PhaseStarted(phase="faults"):
                self._learning = False
            case ViewChanged() | Reachability():
                self._placed.feed(record)
            case _:
                pass

    @property
    def struck(self) -> bool:
        return self._strike is not None

    @property
    def stable(self) -> list[Asked]:
        return [asked for asked, variants in self.variants.items() if variants.digest is not None]

    @property
    def varied(self) -> list[Asked]:
        """Those that were answered in several ways in calm weather."""
        return [asked for asked, variants in self.variants.items() if variants.varied]

    @property
    def altered_count(self) -> int:
        return self.how.total()

    def apart(self) -> list[str]:
        """Instances or entry nodes that always answer otherwise than the rest, a line each canary."""
        found = ((asked, variants.apart()) for asked, variants in self.variants.items())
        return [f"{asked}: {said}" for asked, said in found if said is not None]

    def sources(self) -> int:
        """The most entry nodes or instances that gave one canary's answer in calm weather."""
        return max((variants.sources() for variants in self.variants.values()), default=0)

    def torn(self) -> list[str]:
        """Characters that came broken in a stream and whole where nothing was streamed."""
        lines: list[str] = []
        for asked in self.stable:
            whole = asked._replace(streamed=False)
            if asked.streamed and _REPLACEMENT in self._expected(asked) and whole in self.variants:
                expected = self._expected(whole)
                if expected and _REPLACEMENT not in expected:
                    lines.append(f"{asked}: characters were torn between chunks that are whole without streaming")
        return lines

    def crossed(self) -> list[str]:
        """In calm weather: an answer that is always another canary's, and was this one's only now and then."""
        mains = {asked: max(v.by_digest, key=lambda d, v=v: v.by_digest[d].count) for asked, v in self.variants.items()}
        lines: list[str] = []
        for asked, variants in self.variants.items():
            others = {
                digest: other.canary
                for other, digest in mains.items()
                if other.model == asked.model and other.canary != asked.canary and digest != mains[asked]
            }
            lines += [
                f"{asked}: {variant.count} times the answer to {others[digest]}, through {', '.join(variant.entries)}"
                for digest, variant in variants.by_digest.items()
                if digest in others
            ]
        return lines

    def _expected(self, asked: Asked) -> str:
        variants = self.variants[asked]
        return "" if variants.digest is None else "".join(variants.by_digest[variants.digest].pieces)

    def _answered(self, record: CanaryAnswered) -> None:
        self.asked += 1
        asked = Asked(record.model, record.canary, record.streamed)
        instance, nodes = self._placed.serving(record.model)
        variants = self.variants.get(asked)
        if self._learning:
            variants = self.variants.setdefault(asked, Variants())
            variants.learn(record, instance)
            return
        expected = None if variants is None else variants.digest
        if variants is None or expected is None or self._strike is None:
            return
        self.judged += 1
        self.exposed += record.started_t <= self._strike.at_t
        if record.digest == expected:
            self._since.same.add((asked, record.entry, instance))
            return
        altered = Altered(
            id=record.id,
            asked=asked,
            entry=record.entry,
            started_t=record.started_t,
            ended_t=record.t,
            instance=instance,
            nodes=nodes,
            difference=self._differs(asked, record),
            strike=self._strike,
        )
        if self._wavers(altered):
            self.wavering.append(altered)
            return
        self.how[altered.how] += 1
        self.altered.append(altered)

    def _wavers(self, altered: Altered) -> bool:
        """It began as expected and went another way, as where sums are rounded otherwise; and since the last strike the
        same was answered as expected, by the same instance and through the same entry node."""
        if altered.how != "other" or not altered.difference.at:
            return False
        begun_in_calm = altered.strike is not None and altered.started_t > altered.strike.at_t
        return begun_in_calm and (altered.asked, altered.entry, altered.instance) in self._since.same

    def _differs(self, asked: Asked, record: CanaryAnswered) -> Difference:
        key = asked, record.digest
        found = self._differences.get(key)
        if found is not None:
            return found
        others = {
            other.canary: text
            for other in self.variants
            if other.model == asked.model and other.canary != asked.canary and (text := self._expected(other))
        }
        got = record.pieces or self._learnt(asked, record.digest)
        if got:
            found = difference(self._tokens(asked), got, others)
        else:
            found = Difference("other", 1, 0, "an answer whose text is not in the journal")
        if len(self._differences) < _MOST_KEPT:
            self._differences[key] = found
        return found

    def _tokens(self, asked: Asked) -> list[str]:
        """The expected answer, in tokens where it was streamed or the same was streamed as well."""
        streamed = asked._replace(streamed=True)
        as_streamed = streamed in self.variants and self._expected(streamed) == self._expected(asked)
        variants = self.variants[streamed if as_streamed else asked]
        return [] if variants.digest is None else variants.by_digest[variants.digest].pieces

    def _learnt(self, asked: Asked, digest: str) -> list[str]:
        """The text of an answer that was given before the first strike: it is in no later record."""
        variant = self.variants[asked].by_digest.get(digest)
        return [] if variant is None else variant.pieces


def plain(altered: Altered) -> dict[str, object]:
    """For a report."""
    found: dict[str, object] = msgspec.to_builtins(altered)
    return found


def hows(watch: AnswerWatch) -> str:
    """How many were altered in which way, in words."""
    return ", ".join(f"{watch.how[how]} {how}" for how in HOWS if watch.how[how])
