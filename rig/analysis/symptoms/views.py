"""Views that disagree, ghosts, instances on nodes that are gone, masters too many or none."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, cast

from rig.analysis.recovery.judged import Judged
from rig.analysis.recovery.reigns import Reigns
from rig.analysis.symptoms.calm import Calm
from rig.analysis.symptoms.lasting import Lasting
from rig.journal.records import AnyRecord, FaultChanged, MasterSeen, Reachability, ViewChanged

_WATCHED: Final = frozenset({"nodes", "instances", "deployments", "node_id"})
_COMPARED: Final = ("nodes", "instances", "deployments")
MAX_NAMED: Final = 4
"""So many differences of one kind are named."""


@dataclass
class ViewWatch:
    """`calm` and `reigns` take in each record before this does."""

    calm: Calm
    reigns: Reigns
    judged: Judged
    _facets: dict[tuple[str, str], Any] = field(default_factory=dict[tuple[str, str], Any])
    _down: set[str] = field(default_factory=set[str])
    _owner: dict[str, str] = field(default_factory=dict[str, str])  # node id → inventory node, ever seen
    _claimed: bool = False

    def __post_init__(self) -> None:
        self.disagreeing = Lasting(self.calm)
        self.ghosts = Lasting(self.calm)
        self.stranded = Lasting(self.calm)
        self.masters = Lasting(self.calm)

    def feed(self, record: AnyRecord) -> None:
        match record:
            case Reachability():
                (self._down.discard if record.reachable else self._down.add)(record.node)
            case ViewChanged() if record.facet in _WATCHED:
                if record.facet == "node_id":
                    self._owner[str(record.value)] = record.node
                self._facets[record.node, record.facet] = record.value
            case MasterSeen():
                self._claimed = True
            case FaultChanged():
                pass
            case _:
                return
        self._judge(record.t)

    def look(self, *times: float) -> None:
        """Nothing has changed; time has passed."""
        if self.calm.lasting(0.0, times[-1]) > 0.0:  # else nothing has lasted for longer
            for lasting in (self.disagreeing, self.ghosts, self.stranded, self.masters):
                lasting.look(*times)

    def finish(self, end_t: float) -> None:
        """Up to the end of the observation."""
        self.look(end_t)

    def _judge(self, now: float) -> None:
        answering = sorted({node for node, _ in self._facets} - self._down)
        self.disagreeing.tell(now, self._disagreements(answering))
        master = self._master(answering)
        if master is not None:
            self.ghosts.tell(now, self._ghosts(master))
            self.stranded.tell(now, self._stranded(master))
        if self._claimed:
            self.masters.tell(now, self._odd_masters(answering))

    def _disagreements(self, answering: list[str]) -> dict[str, str]:
        found: dict[str, str] = {}
        for facet in _COMPARED:
            known = {node: _ids(self._facets[node, facet]) for node in answering if (node, facet) in self._facets}
            if len(set(known.values())) > 1:
                found[facet] = f"views of {facet} differ: {self._difference(facet, known)}"
        return found

    def _difference(self, facet: str, known: dict[str, tuple[str, ...]]) -> str:
        """Which ids are not listed by all, by whom and by whom not; the first few."""
        odd = sorted(set[str]().union(*known.values()) - set[str].intersection(*map(set, known.values())))
        said = list[str]()
        for name in odd[:MAX_NAMED]:
            have = [node for node, ids in known.items() if name in ids]
            lack = [node for node in known if node not in have]
            said.append(f"{self._named(facet, name, have[0])} is listed by {', '.join(have)}, not by {', '.join(lack)}")
        return "; ".join(said) + (f"; and {len(odd) - MAX_NAMED} more" if len(odd) > MAX_NAMED else "")

    def _named(self, facet: str, name: str, node: str) -> str:
        """An id with what it stands for: a node's name, or the model of an instance or deployment."""
        if facet == "nodes":
            known = self._owner.get(name)
        else:
            known = _mapping(_mapping(self._facets[node, facet]).get(name)).get("model")
        return f"{name} ({known})" if known else name

    def _master(self, answering: list[str]) -> str | None:
        claims = [node for node in answering if self.reigns.current(node) is not None]
        return claims[0] if len(claims) == 1 else None

    def _ghosts(self, master: str) -> dict[str, str]:
        listed = _ids(self._facets.get((master, "nodes")))
        current = {self._facets.get((node, "node_id")) for node in {node for node, _ in self._facets}}
        return {
            name: f"{master} lists {name}, an id that {self._owner[name]} no longer has"
            for name in listed
            if name in self._owner and name not in current
        }

    def _stranded(self, master: str) -> dict[str, str]:
        nodes = set(_ids(self._facets.get((master, "nodes"))))
        found: dict[str, str] = {}
        for name, item in _mapping(self._facets.get((master, "instances"))).items():
            away = sorted(set(self.judged.workers(_mapping(item))) - nodes)
            if away and nodes:
                model = _mapping(item).get("model")
                found[name] = (
                    f"{master} lists {name} of {model} with a {self.judged.worker} on {', '.join(away)}, "
                    "which it does not list"
                )
        return found

    def _odd_masters(self, answering: list[str]) -> dict[str, str]:
        claims = [node for node in answering if self.reigns.current(node) is not None]
        if len(claims) > 1:
            return {"many": f"{', '.join(claims)} each claim to be master"}
        return {} if claims else {"none": "no node that answers claims to be master"}


def _ids(value: Any) -> tuple[str, ...]:
    if isinstance(value, dict):
        return tuple(sorted(cast("dict[str, Any]", value)))
    return tuple(str(item) for item in cast("list[Any]", value)) if isinstance(value, list) else ()


def _mapping(value: Any) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
