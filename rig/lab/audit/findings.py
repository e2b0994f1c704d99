"""What a comparison finds: agreements by kind, explanations by name, and differences with both accounts."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Difference:
    """`about` is whose: a request, a fault, a process. Each account is told in its own words."""

    about: str
    rig: str
    cluster: str


@dataclass
class Compared:
    """One kind of thing. `explained` counts, by the named evidence, what agrees in substance and not in every word."""

    title: str
    compared: int = 0
    explained: Counter[str] = field(default_factory=Counter[str])
    differing: int = 0  # things; each may differ in several points
    differences: list[Difference] = field(default_factory=list[Difference])

    def agree(self) -> None:
        self.compared += 1

    def explain(self, evidence: str) -> None:
        self.compared += 1
        self.explained[evidence] += 1

    def differ(self, about: str, rig: str, cluster: str) -> None:
        self.judge(about, [(rig, cluster)])

    def judge(self, about: str, faults: list[tuple[str, str]]) -> None:
        """One thing with every point on which it may differ, as (rig, cluster); none: they agree."""
        self.compared += 1
        self.differing += bool(faults)
        self.differences += [Difference(about, rig, cluster) for rig, cluster in faults]


@dataclass
class Spread:
    """Differences in time between the accounts, in seconds, |rig - cluster|."""

    title: str
    values: list[float] = field(default_factory=list[float])

    def add(self, value: float) -> None:
        self.values.append(abs(value))

    def quantile(self, share: float) -> float:
        """Nearest rank."""
        ordered = sorted(self.values)
        return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


@dataclass
class Findings:
    """In the order of the table."""

    rows: list[Compared] = field(default_factory=list[Compared])
    spreads: dict[str, Spread] = field(default_factory=dict[str, Spread])

    def row(self, title: str) -> Compared:
        for each in self.rows:
            if each.title == title:
                return each
        self.rows.append(Compared(title))
        return self.rows[-1]

    def spread(self, title: str) -> Spread:
        return self.spreads.setdefault(title, Spread(title))

    @property
    def differences(self) -> list[Difference]:
        return [difference for row in self.rows for difference in row.differences]
