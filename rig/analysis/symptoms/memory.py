"""Memory that a node gives back: with the same models on it, the same process has as much free as before."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, cast

from rig.journal.records import AnyRecord, FaultChanged, NodeMemory, NodeProcesses, PhaseStarted, ViewChanged

LOSS_SHARE: Final = 0.05
"""Of the free memory that it had before. The target tells it to 1 % of a node's memory."""
OWN_LOSS_SHARE: Final = 0.2
OWN_LOSS_BYTES: Final = 4 << 30
"""By the node's own word, which other programs and caches change as well."""
SETTLED_S: Final = 30.0
LEAST_SETTLED_S: Final = 4.0
"""For so long the same instances must have been there, at pace 1 and at any: memory is told now and then only."""
MAX_GROUPS: Final = 20_000
_BEFORE: Final = frozenset({"before", "before-unwedging", "start"})

Free = tuple[float, int]  # when, bytes
Group = tuple[str, str, tuple[str, ...]]  # whose word, which node or process, which models are on it


@dataclass
class MemoryWatch:
    """Looks before each strike and at the end, when models have been serving for a while."""

    own_word: bool  # whether the nodes' own figures mean anything (emulated nodes share one machine)
    workers: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    pace: float = 1.0
    _memory: dict[str, dict[str, int]] = field(default_factory=dict[str, dict[str, int]])
    _instances: dict[str, Any] = field(default_factory=dict[str, Any])
    _ids: dict[str, str] = field(default_factory=dict[str, str])
    _processes: dict[str, NodeProcesses] = field(default_factory=dict[str, NodeProcesses])
    samples: dict[Group, tuple[Free, Free]] = field(default_factory=dict[Group, "tuple[Free, Free]"])  # first and last
    _changed_t: dict[str, float] = field(default_factory=dict[str, float])

    def feed(self, record: AnyRecord) -> None:
        match record:
            case ViewChanged(facet="memory") if isinstance(record.value, dict):
                self._memory[record.node] = cast("dict[str, int]", record.value)
            case ViewChanged(facet="instances"):
                self._instances[record.node] = record.value
                self._changed_t[record.node] = record.t
            case ViewChanged(facet="node_id"):
                self._ids[record.node] = str(record.value)
            case FaultChanged(state="planned") | PhaseStarted(phase="drain" | "end"):
                self._sample(record.t)
            case NodeProcesses():
                self._processes[record.node] = record
            case NodeMemory() if self.own_word and record.look in _BEFORE and record.available_bytes:
                process = self._processes.get(record.node)
                if process is not None:
                    self._add("itself", record.node, f"{process.main}", record.t, record.available_bytes)
            case _:
                pass

    def kept_back(self) -> list[str]:
        found: list[str] = []
        for (word, who, models), (first, last) in self.samples.items():
            lost = first[1] - last[1]
            limit = LOSS_SHARE * first[1] if word == "target" else max(OWN_LOSS_SHARE * first[1], OWN_LOSS_BYTES)
            if lost > limit:
                on = ", ".join(models) or "nothing"
                found.append(
                    f"{who} with {on}: {first[1] / 2**30:.1f} GiB free at {first[0]:.1f} s, "
                    f"{last[1] / 2**30:.1f} GiB at {last[0]:.1f} s (by {word})"
                )
        return found

    def compared(self) -> int:
        return sum(first is not last for first, last in self.samples.values())

    def _sample(self, t: float) -> None:
        """Each node's own view of itself."""
        for node, node_id in self._ids.items():
            available = self._memory.get(node, {}).get(node_id)
            if available is not None:
                self._add("target", node, node_id, t, available)

    def _hosted(self, node: str) -> tuple[str, ...]:
        listed = self._instances.get(node)
        if not isinstance(listed, dict):
            return ()
        items = [
            cast("dict[str, Any]", item) for item in cast("dict[str, Any]", listed).values() if isinstance(item, dict)
        ]
        return tuple(sorted(str(item.get("model")) for item in items if self._ids.get(node) in self.workers(item)))

    def _add(self, word: str, node: str, who: str, t: float, available: int) -> None:
        settled_s = max(SETTLED_S / self.pace, LEAST_SETTLED_S)
        if t - self._changed_t.get(node, -math.inf) >= settled_s:
            group = (word, f"{node} {who}", self._hosted(node))
            free = (t, available)
            first, _ = self.samples.get(group, (free, free))
            if group in self.samples or len(self.samples) < MAX_GROUPS:
                self.samples[group] = first, free
