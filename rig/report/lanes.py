"""What each node and each instance went through, as spans of time, from what the views showed. Pure, bounded.

Nodes: whether their API answered, who claimed to be master, memory. Instances: the view that counts is that of the one
node that claims to be master, else of the answering node with the longest event log; what only others list is
`elsewhere` (a node that replays its log shows old instances), and one of whose processes nothing is known is `listed`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple, TypeAlias, cast

from rig.analysis.intake.ticks import Health, Index, handed_over
from rig.journal.records import AnyRecord, MasterSeen, NodeMemory, Reachability, ViewChanged

MAX_SPANS: Final = 5000
MAX_INSTANCES: Final = 1000
MAX_SAMPLES: Final = 4096
READY: Final = ("Ready", "Running")
"""How the status of a process that serves ends."""
InstanceState: TypeAlias = Literal["ready", "starting", "failed", "listed", "elsewhere"]


@dataclass(slots=True)
class Span:
    """[from_t, to_t); `to_t` is None while it goes on."""

    from_t: float
    to_t: float | None
    state: str


class Track:
    """One thing that is in one state at a time, or in none. Keeps the first 5000 spans; `left_out` counts the rest."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self.left_out = 0

    def set(self, at_t: float, state: str | None) -> None:
        last = self.spans[-1] if self.spans else None
        if last is not None and last.to_t is None:
            if last.state == state:
                return
            last.to_t = max(at_t, last.from_t)
        if state is None:
            return
        if len(self.spans) >= MAX_SPANS:
            self.left_out += 1
            return
        self.spans.append(Span(at_t, None, state))


class Sample(NamedTuple):
    t: float
    value: float


class Samples:
    """A figure over time. When there are too many, of each two neighbours the larger one stays."""

    def __init__(self, limit: int = MAX_SAMPLES) -> None:
        self._limit = limit
        self._held: list[tuple[float, float]] = []  # when, what

    @property
    def kept(self) -> list[Sample]:
        return [Sample(at_t, value) for at_t, value in self._held]

    def add(self, at_t: float, value: float) -> None:
        self.add_all([(at_t, value)])

    def add_all(self, samples: Sequence[tuple[float, float]]) -> None:
        """Of each, when and what."""
        first = 0
        while first < len(samples):
            free = self._limit - len(self._held)
            self._held += samples[first : first + free]
            first += free
            if len(self._held) >= self._limit:
                pairs = zip(self._held[::2], self._held[1::2], strict=False)
                self._held = [one if one[1] >= other[1] else other for one, other in pairs]


@dataclass
class NodeLane:
    """`memory`: available bytes as the node itself told the target; `measured`: read on the node around faults."""

    reach: Track = field(default_factory=Track)
    master: Track = field(default_factory=Track)
    memory: Samples = field(default_factory=Samples)
    measured: Samples = field(default_factory=Samples)
    wired: Samples = field(default_factory=Samples)


@dataclass
class InstanceLane:
    id: str
    model: str
    track: Track = field(default_factory=Track)


@dataclass
class Controller:
    """The rig's own process."""

    cpu_percent: Samples = field(default_factory=Samples)
    rss_bytes: Samples = field(default_factory=Samples)
    lag_s: Samples = field(default_factory=Samples)

    def take(self, rows: Health) -> None:
        times: list[float] = rows["t"].tolist()
        for samples, name in (
            (self.cpu_percent, "cpu_percent"),
            (self.rss_bytes, "rss_bytes"),
            (self.lag_s, "lag_max_s"),
        ):
            samples.add_all(list(zip(times, rows[name].tolist(), strict=True)))


class Lanes:
    def __init__(self, nodes: tuple[str, ...] = ()) -> None:
        self.nodes: dict[str, NodeLane] = {name: NodeLane() for name in nodes}
        self.instances: dict[str, InstanceLane] = {}
        self.instances_left_out = 0
        self._listed: set[str] = set()
        self.controller = Controller()
        self._views = _Views()

    def feed(self, record: AnyRecord) -> None:
        if handed_over(record, self.health, self.indices):
            return
        match record:
            case Reachability():
                self._node(record.node).reach.set(record.t, "answers" if record.reachable else "silent")
            case MasterSeen():
                self._node(record.node).master.set(record.at_t, "master" if record.is_master else None)
            case ViewChanged(facet="memory"):
                self._memory(record)
            case NodeMemory():
                lane = self._node(record.node)
                if record.available_bytes is not None:
                    lane.measured.add(record.t, record.available_bytes)
                if record.wired_bytes is not None:
                    lane.wired.add(record.t, record.wired_bytes)
            case _:
                pass
        if self._views.feed(record):
            self._show(record.t)

    def health(self, rows: Health) -> None:
        self.controller.take(rows)

    def indices(self, run: Sequence[Index]) -> None:
        self._views.indices(run)

    def _node(self, name: str) -> NodeLane:
        return self.nodes.setdefault(name, NodeLane())

    def _memory(self, record: ViewChanged) -> None:
        own_id = self._views.node_ids.get(record.node)
        value = _mapping(record.value).get(own_id or "")
        if isinstance(value, int | float):
            self._node(record.node).memory.add(record.t, float(value))

    def _show(self, at_t: float) -> None:
        states = self._views.states()
        for name in states:
            if name in self.instances:
                continue
            if len(self.instances) >= MAX_INSTANCES:
                self.instances_left_out += 1
                continue
            self.instances[name] = InstanceLane(name, states[name][1])
        for name in self._listed - states.keys():
            self.instances[name].track.set(at_t, None)
        self._listed = {name for name in states if name in self.instances}
        for name in self._listed:
            self.instances[name].track.set(at_t, states[name][0])


class _Views:
    """The latest views of all nodes, and what they say together of each instance."""

    def __init__(self) -> None:
        self.node_ids: dict[str, str] = {}
        self._instances: dict[str, dict[str, Any]] = {}
        self._statuses: dict[str, dict[str, Any]] = {}
        self._index: dict[str, int] = {}
        self._silent: set[str] = set()
        self._masters: set[str] = set()

    def feed(self, record: AnyRecord) -> bool:
        """Whether instances may look different now."""
        match record:
            case ViewChanged(facet="instances"):
                self._instances[record.node] = _mapping(record.value)
            case ViewChanged(facet="runners"):
                self._statuses[record.node] = _mapping(record.value)
            case ViewChanged(facet="node_id"):
                self.node_ids[record.node] = str(record.value)
                return False
            case Reachability():
                (self._silent.discard if record.reachable else self._silent.add)(record.node)
            case MasterSeen():
                (self._masters.add if record.is_master else self._masters.discard)(record.node)
            case _:
                return False
        return True

    def indices(self, run: Sequence[Index]) -> None:
        for node, _, _, value in run:
            self._index[node] = value

    def states(self) -> dict[str, tuple[InstanceState, str]]:
        """State and model of every instance that an answering node lists."""
        answering = [node for node in self._instances if node not in self._silent]
        chief = self._chief(answering)
        found: dict[str, tuple[InstanceState, str]] = {}
        for node in answering:
            for name, item in self._instances[node].items():
                model = str(_mapping(item).get("model"))
                if node == chief:
                    found[name] = (_state(_mapping(item), self._statuses.get(node, {})), model)
                else:
                    found.setdefault(name, ("elsewhere", model))
        return found

    def _chief(self, answering: list[str]) -> str | None:
        claims = [node for node in answering if node in self._masters]
        if len(claims) == 1:
            return claims[0]
        return max(answering, key=lambda node: (self._index.get(node, -1), node), default=None)


def _state(instance: Mapping[str, Any], known: Mapping[str, Any]) -> InstanceState:
    """By what is known of the processes that make it up."""
    statuses = {str(known[name]) for name in _mapping(instance.get("runners")).values() if name in known}
    if not statuses:
        return "listed"
    if all(status.endswith(READY) for status in statuses):
        return "ready"
    if any("Fail" in status or "Shut" in status for status in statuses):
        return "failed"
    return "starting"


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
