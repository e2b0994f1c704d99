"""What a canary was answered in calm weather: one answer, or several, and by whom."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from rig.journal.records import CanaryAnswered

LEAST_LEARNT: Final = 3
"""So many equal answers make a canary stable."""
MOST_VARIANTS: Final = 64


class Asked(NamedTuple):
    """A canary of a model in one form; what it is answered is compared with nothing else."""

    model: str
    canary: str
    streamed: bool

    def __str__(self) -> str:
        return f"{self.canary} of {self.model}, {'streamed' if self.streamed else 'whole'}"


@dataclass
class Variant:
    """One of the answers."""

    pieces: list[str] = field(default_factory=list[str])
    alone: int = 0
    loaded: int = 0
    entries: Counter[str] = field(default_factory=Counter[str])
    instances: Counter[str] = field(default_factory=Counter[str])

    @property
    def count(self) -> int:
        return self.alone + self.loaded


@dataclass
class Variants:
    """The answers to one canary, by digest. Of more than 64 different ones the rest is only counted."""

    by_digest: dict[str, Variant] = field(default_factory=dict[str, Variant])
    more: int = 0

    def learn(self, answer: CanaryAnswered, instance: str | None) -> None:
        variant = self.by_digest.get(answer.digest)
        if variant is None:
            if len(self.by_digest) >= MOST_VARIANTS:
                self.more += 1
                return
            variant = self.by_digest[answer.digest] = Variant()
        variant.pieces = variant.pieces or answer.pieces
        if answer.alone:
            variant.alone += 1
        else:
            variant.loaded += 1
        variant.entries[answer.entry] += 1
        if instance is not None:
            variant.instances[instance] += 1

    @property
    def count(self) -> int:
        return sum(variant.count for variant in self.by_digest.values()) + self.more

    @property
    def varied(self) -> bool:
        return len(self.by_digest) + self.more > 1

    @property
    def digest(self) -> str | None:
        """The answer that is expected from now on; None where it is not known or varies."""
        if self.varied or self.count < LEAST_LEARNT:
            return None
        return next(iter(self.by_digest))

    def sources(self) -> int:
        """How many entry nodes gave an answer, or instances where these are more."""
        entries = {name for variant in self.by_digest.values() for name in variant.entries}
        instances = {name for variant in self.by_digest.values() for name in variant.instances}
        return max(len(entries), len(instances))

    def apart(self) -> str | None:
        """Who always answers otherwise than the rest, in words; None where nothing is by who answers."""
        if not self.varied or self.more:
            return None
        for what, of in (("through", _entries), ("by instance", _instances)):
            by_source: dict[str, Counter[str]] = {}
            for digest, variant in self.by_digest.items():
                for source, count in of(variant).items():
                    by_source.setdefault(source, Counter())[digest] += count
            constant = all(len(found) == 1 and found.total() > 1 for found in by_source.values())
            if constant and len(by_source) > 1:
                told = {source: next(iter(found)) for source, found in sorted(by_source.items())}
                return "; ".join(f"{what} {source}: {self._shown(digest)}" for source, digest in told.items())
        return None

    def _shown(self, digest: str) -> str:
        text = "".join(self.by_digest[digest].pieces)
        return repr(text[:60]) if text else digest


def _entries(variant: Variant) -> Mapping[str, int]:
    return variant.entries


def _instances(variant: Variant) -> Mapping[str, int]:
    return variant.instances
