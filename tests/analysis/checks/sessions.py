"""One master's session written out by hand: what its event log says, and what its view showed at the time."""

from __future__ import annotations

from typing import Any

from rig.journal.records import (
    AnyRecord,
    ApiCall,
    EventLogRead,
    EventSeen,
    Look,
    MasterSeen,
    NodeProcesses,
    PhaseStarted,
    ViewChanged,
)
from tests.analysis.tape import A, Tape

NODES = ("node-1", "node-2", "node-3")
POLL_S = 0.4


class Session:
    """`node-1` is master from `begun_t` on. Every node reports once a second. Seconds at pace 1.

    Each call says what happened at `t`; `read` says that the log was read, without it there are the views alone.
    """

    def __init__(self, tape: Tape, begun_t: float = 10.0, node: str = "node-1", name: str = "s1") -> None:
        self.tape = tape
        self.node = node
        self._name = name
        self._begun_t = begun_t
        self._index = 0
        self._seen: list[tuple[float, int, str, dict[str, Any]]] = []
        self._instances: dict[str, dict[str, Any]] = {}
        self._deployments: dict[str, dict[str, Any]] = {}
        self._runners: dict[str, str] = {}
        self.also_views = True
        for number, one in enumerate(NODES, 1):
            tape.add(ViewChanged(t=0.5, node=one, facet="node_id", since_t=None, value=f"id-{number}"))
        self.view(1.0, "instances", {})
        self.view(1.0, "deployments", {})
        tape.add(MasterSeen(t=begun_t, node=node, is_master=True, source="log", at_t=begun_t, at_error_s=0.2))

    def view(self, t: float, facet: Any, value: Any) -> None:
        """Seen at the first poll after `t`, which comes half an interval later."""
        if self.also_views:
            since_t = t - POLL_S / 2
            self.tape.add(ViewChanged(t=t + POLL_S / 2, node=self.node, facet=facet, since_t=since_t, value=value))

    def event(self, t: float, name: str, **data: Any) -> None:
        self._seen.append((t, self._index, name, data))
        self._index += 1

    def deploy(self, t: float, deployment: str = "d", model: str = A) -> None:
        self._deployments[deployment] = {"model": model, "status": "placing", "instance": None, "error": None}
        self.event(t, "DeploymentCreated", deployment=deployment, **self._deployments[deployment])
        self.view(t, "deployments", dict(self._deployments))

    def appear(self, t: float, instance: str, model: str = A, *runners: str) -> None:
        """An instance is made; whose it is is not said."""
        held = {f"id-{n}": runner for n, runner in enumerate(runners or (f"r-{instance}",), 1)}
        self._instances[instance] = {"model": model, "runners": held, "port": 1}
        self.event(t, "InstanceCreated", instance=instance, **self._instances[instance])
        self.view(t, "instances", dict(self._instances))

    def place(
        self, t: float, instance: str, deployment: str = "d", model: str = A, *, ready_t: float | None = None
    ) -> None:
        """By the keeper."""
        self.appear(t, instance, model)
        self.event(t, "DeploymentPlaced", deployment=deployment, instance=instance)
        if deployment in self._deployments:
            self._deployments[deployment] = self._deployments[deployment] | {"instance": instance, "error": None}
            self.view(t, "deployments", dict(self._deployments))
        if ready_t is not None:
            self.runner(ready_t, f"r-{instance}", "RunnerReady")

    def runner(self, t: float, runner: str, status: str) -> None:
        self._runners = self._runners | {runner: status}
        self.event(t, "RunnerStatusUpdated", runner=runner, status=status)
        self.view(t, "runners", dict(self._runners))

    def lose(self, t: float, instance: str) -> None:
        del self._instances[instance]
        self.event(t, "InstanceDeleted", instance=instance)
        self.view(t, "instances", dict(self._instances))

    def refuse(self, t: float, reason: str = "no memory", deployment: str = "d") -> None:
        self._deployments[deployment] = self._deployments[deployment] | {"error": reason, "status": "cant_place"}
        self.event(t, "DeploymentPlacementFailed", deployment=deployment, error=reason)
        self.view(t, "deployments", dict(self._deployments))

    def delete(self, t: float, deployment: str = "d") -> None:
        del self._deployments[deployment]
        self.event(t, "DeploymentDeleted", deployment=deployment)
        self.view(t, "deployments", dict(self._deployments))

    def by_hand(self, t: float, instance: str, model: str = A) -> None:
        self.tape.add(
            ApiCall(t=t + 0.3, what="place", node=self.node, asked_t=t - 0.1, status=200, model=model, subject=instance)
        )
        self.appear(t, instance, model)

    def read(self, t: float) -> None:
        """The log is read to its end."""
        for at_t, index, name, data in sorted(self._seen, key=lambda seen: (seen[0], seen[1])):
            self.tape.add(
                EventSeen(
                    t=t, node=self.node, session=self._name, index=self._place(at_t, index), name=name, data=data,
                    reports=self._reports(at_t),
                )
            )  # fmt: skip
        count = self._place(t, self._index) + 1
        self.tape.add(EventLogRead(t=t, node=self.node, session=self._name, count=count, reports=self._reports(t)))

    def polled(self, t: float) -> None:
        """The node was asked how far its log had come."""
        self.view(t, "event_index", self._place(t, self._index))

    def _place(self, at_t: float, index: int) -> int:
        """Events in the order of their times, with room for the reports in between."""
        return int((at_t - self._begun_t) * 1000) * 10 + index

    def _reports(self, at_t: float) -> dict[str, int]:
        return {f"id-{n}": max(0, int(at_t - self._begun_t + n / 10)) for n in (1, 2, 3)}


def calm(tape: Tape, from_t: float, to_t: float) -> None:
    """Load without faults, with a record of the rig's own health each second."""
    tape.add(PhaseStarted(t=from_t, phase="baseline"))
    for second in range(int(from_t), int(to_t)):
        tape.own(second + 0.5)


def processes(
    t: float,
    node: str = "node-1",
    main: str | None = "7:1",
    *,
    look: Look = "before",
    fault: int | None = 1,
    cpu_s: float = 1.0,
    orphans: int = 0,
    runners: dict[str, float] | None = None,
) -> AnyRecord:
    """`runners`: CPU seconds of each."""
    used = runners or {}
    return NodeProcesses(
        t=t,
        node=node,
        look=look,
        fault=fault,
        main=main,
        orphans=orphans,
        cpu_s=cpu_s,
        node_t=t,
        worker_cpu_s=used,
    )
