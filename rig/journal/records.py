"""The records of a journal, one JSON object a line, told apart by `kind`.

`t` is always the moment of writing on the run's clock (seconds since the start of the run). Other times on that clock
end in `_t`; times on a node's own monotonic clock end in `_node_t`; durations end in `_s`. `None` means not known.
Words (`reason`, `detail`, `text`, `evidence`) are for readers: no code goes by what they say. Reading is lenient:
unknown fields are ignored. `rig.journal.earlier` reads records of earlier versions of the journal.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeAlias

import msgspec

Outcome: TypeAlias = Literal["completed", "error", "lost"]
How: TypeAlias = Literal["hung", "overdue", "truncated", "empty"]
Cause: TypeAlias = Literal[
    "status", "message", "remark", "unparsable", "unconnected", "connect-deadline", "broken", "defect"
]
"""What an error was: an HTTP status that is none of success; the server's error event or object; words instead of an
answer; what is neither HTTP nor JSON; no connection; none within the rig's own deadline; a connection that broke; a
defect of the rig."""
FaultKind: TypeAlias = str
"""The name of a kind of fault (`rig.faults`). A journal may name kinds that are not there any more."""
FaultState: TypeAlias = Literal[
    "planned", "leased", "struck", "holding", "healed", "skipped", "ineffective", "invalid", "unhealed"
]
Look: TypeAlias = Literal["before", "after", "before-unwedging", "idle", "start", "end"]
"""When a node was inspected: around a fault; before the rig restarted anything after a fault; while the target was
idle; at the start and at the end of a scenario."""
Direction: TypeAlias = Literal["both", "in", "out"]
Phase: TypeAlias = Literal["setup", "warmup", "baseline", "faults", "drain", "end"]
Facet: TypeAlias = str
"""What a node of the target tells of, in the target's words."""


EVENT_LOG_UNREAD: Final = "event-log-unread"
"""The code of a finding: a node's event log could not be read, or not to its end (`data.node`)."""


class Record(msgspec.Struct, frozen=True, kw_only=True, tag_field="kind", omit_defaults=True, gc=False):
    t: float


class PhaseStarted(Record, frozen=True, kw_only=True, tag="phase"):
    phase: Phase


class RunEnded(Record, frozen=True, kw_only=True, tag="run_end"):
    """Written last. A journal without it is of a run that did not finish."""

    reason: Literal["finished", "interrupted", "terminated", "aborted", "failed"]
    detail: str = ""


class LockLost(Record, frozen=True, kw_only=True, tag="lock_lost"):
    """A lock on a node is not (or may not be) this run's any more: another rig may be at work there.

    `since_t` is when it was last known to be this run's. The run ends, and what fails from then on is nobody's.
    """

    since_t: float
    reason: str = ""


# Load and probes


class RequestStarted(Record, frozen=True, kw_only=True, tag="request_start"):
    """Written before the first byte is sent. `planned_t` is when the arrival process wanted it sent."""

    id: str
    source: Literal["load", "probe"]
    client: str
    model: str
    entry: str  # the entry node's name in the inventory
    planned_t: float
    streamed: bool
    prompt_tokens: int
    max_tokens: int
    canary: str | None = None  # which one, where it is one


class CanaryAnswered(Record, frozen=True, kw_only=True, tag="canary"):
    """What a canary was answered that completed; written after its end line.

    `pieces` are the text as it came (one piece where it was not streamed), and empty where a record before has the same
    `digest` of this canary, model and form.
    """

    id: str  # of its request
    canary: str
    model: str
    entry: str
    streamed: bool
    alone: bool = False  # no other request of the load was on its way
    started_t: float
    response_id: str | None = None
    digest: str
    pieces: list[str] = []


class AnswerMalformed(Record, frozen=True, kw_only=True, tag="malformed"):
    """An answer that completed and whose form a client cannot rely on."""

    id: str  # of its request
    model: str
    entry: str
    what: list[str]


class HeldBack(Record, frozen=True, kw_only=True, tag="held_back"):
    """Of an open loop: what kept it from its times beside being late. Written when it stops sending, if anything did.

    `held` requests found no place when they were due; they have start lines of their own, later than `planned_t`.
    `unsent` were due by then and have no start line: nobody knows what the target would have made of them.
    """

    bound: int  # requests in flight at once
    held: int
    longest_s: float  # the longest wait for a place
    unsent: int


class Gaps(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """Gaps between token-bearing chunks, in seconds. `sketch` maps bucket to count, see `rig.load.stream.GapSketch`."""

    count: int = 0
    sum_s: float = 0.0
    max_s: float = 0.0
    sketch: dict[str, int] = {}


class RequestEnded(Record, frozen=True, kw_only=True, tag="request_end"):
    """`outcome` is what the client saw; `void` and `unfinished` are decided by the analysis, not here."""

    id: str
    outcome: Outcome
    how: How | None = None
    started_t: float  # when sending began: `t` of the start line or a little later
    connected_t: float | None = None
    first_byte_t: float | None = None
    first_token_t: float | None = None
    last_token_t: float | None = None
    last_progress_t: float | None = None  # token or an advancing prefill
    ended_t: float
    status: int | None = None
    response_id: str | None = None
    tokens: int = 0  # content-bearing chunks seen
    usage_tokens: int | None = None  # what the server said
    finish_reason: str | None = None
    gaps: Gaps = Gaps()
    unclean_end: str | None = None  # completed, but what followed was not as it should be
    damaged: str | None = None  # a token count unlike the server's usage
    own_failure: str | None = None  # the rig itself failed, and not the target: such a request is void
    cause: Cause | None = None  # of an error
    evidence: str = ""  # for everything not completed: error class, message, tail of the body (bounded)


# Faults


class FaultChanged(Record, frozen=True, kw_only=True, tag="fault"):
    """A fault entered a state. The state is written before the act that is to bring it about is called complete.

    `at_t` is when it happened (mapped from the node's clock when the node said so), `at_error_s` how uncertain that is.
    """

    fault: int  # position in the schedule, from 0; -1 for `rig inject`
    fault_kind: FaultKind
    state: FaultState
    aim: str  # as scheduled: "master", "node studio-2", "a worker of MODEL", "studio-1 | studio-2"
    nodes: list[str] = []  # nodes whose process, or whose network, is hit; resolved at the strike
    processes_hit: list[str] = []  # nodes whose main process is killed or stopped (own-node rule)
    model: str | None = None  # for the kill of a worker: whose
    hold_s: float = 0.0
    clients_cut: list[str] = []  # nodes whose client path the fault cuts (own-node rule)
    direction: Direction = "both"  # for a partition: what its first side does not hear (in), or cannot send (out)
    halves: dict[str, FaultKind] = {}  # for a double: which kind strikes which node
    stopped: bool = False  # skipped because the run had come to its end: nothing is wrong with the fault
    at_t: float
    at_error_s: float = 0.0
    reason: str = ""
    evidence: dict[str, Any] = {}


class Unwedged(Record, frozen=True, kw_only=True, tag="unwedge"):
    """The rig restarted what did not recover by itself; its cost is kept apart from the fault's recovery."""

    fault: int
    node: str
    started_t: float
    ended_t: float
    ok: bool
    act: Literal["restart", "start"] = "restart"  # a main process that was gone is only started
    cut_short: bool = False  # by the end of the run: the node's own script goes on
    detail: str = ""
    master: bool | None = None  # whether it claimed to be master right before; None: not known


class Redeployed(Record, frozen=True, kw_only=True, tag="redeploy"):
    """A deployment was posted by the rig. `reason` is "setup" or "vanished" (the latter is a finding)."""

    model: str
    reason: Literal["setup", "vanished"]
    ok: bool
    detail: str = ""


# Observation: changes, not polls


class ViewChanged(Record, frozen=True, kw_only=True, tag="view"):
    """One facet of one node's view is different from what it was at `since_t`.

    The change happened at some time in (since_t, t]: `since_t` is when the last poll that showed the old value was
    sent, since an answer tells of some moment between asking and answering. `None` for the first. `value` is canonical
    (see `rig.observe.views`).
    """

    node: str
    facet: Facet
    since_t: float | None
    value: Any


class Looked(Record, frozen=True, kw_only=True, tag="looked"):
    """What the rig's polls asked of a node's API since its last such record, and what the node paid for them.

    `answer_s` is the time that the answered ones took, together: while it builds an answer, a node may do nothing else.
    """

    node: str
    since_t: float
    asked: int
    unanswered: int  # refused, reset, or not answered in time
    answer_s: float
    longest_s: float  # of one answer
    interval_s: float  # between two rounds, as it is now
    misread: dict[Facet, int] = {}  # answers that were not understood, each by the first of its facets


class Reachability(Record, frozen=True, kw_only=True, tag="reach"):
    """A node's API began or ceased to answer polls."""

    node: str
    since_t: float | None
    reachable: bool
    detail: str = ""


class MasterSeen(Record, frozen=True, kw_only=True, tag="master"):
    """Which node claims to be master, from its own log or its open files; `None` for no claim."""

    node: str
    is_master: bool
    source: Literal["log", "files"]
    at_t: float
    at_error_s: float = 0.0
    past: bool = False  # it had said so before it was watched: at `at_t` or at any time before
    elected: str = ""  # the node id that its log says was elected; empty: itself, or unknown


class EventSeen(Record, frozen=True, kw_only=True, tag="event"):
    """An entry of a node's exact event log that matters (instances, deployments, status of workers, nodes, masters)."""

    node: str
    session: str  # changes when the log restarts
    index: int
    name: str
    data: dict[str, Any]
    reports: dict[str, int] = {}  # by node id: periodic reports (memory) in the session up to here; a clock in the log


class EventLogRead(Record, frozen=True, kw_only=True, tag="event_log"):
    """A node's event log was read to its end: all of `session` before `count` that matters is in the journal."""

    node: str
    session: str
    count: int
    reports: dict[str, int] = {}  # as in `EventSeen`, at the end
    source: Literal["file", "api"] | None = None
    took_s: float | None = None


class InstanceServed(Record, frozen=True, kw_only=True, tag="instance_served"):
    """Which requests an instance served, by the target's own tasks, as far as one look told.

    `response_ids` are those of `RequestEnded`.
    """

    node: str  # whose view said so
    instance: str
    response_ids: list[str]


class Served(Record, frozen=True, kw_only=True, tag="served"):
    """The same of one request, as journals had it before. Read, and no longer written."""

    node: str
    response_id: str
    instance: str


class LogLine(Record, frozen=True, kw_only=True, tag="log"):
    node: str
    at_t: float
    at_error_s: float
    text: str


class ClockOffset(Record, frozen=True, kw_only=True, tag="offset"):
    """run clock = node monotonic clock + offset_s, within ± error_s."""

    node: str
    offset_s: float
    error_s: float


class Inspected(Record, frozen=True, kw_only=True):
    """Read on the node itself, not from the target. `fault` is the fault around which the node was inspected."""

    node: str
    look: Look
    fault: int | None = None

    @property
    def when(self) -> str:
        """In words: "before fault 3"."""
        fault = "a fault" if self.fault is None else f"fault {self.fault}"
        match self.look:
            case "before" | "after":
                return f"{self.look} {fault}"
            case "before-unwedging":
                return f"before unwedging after {fault}"
            case "idle":
                return "idle"
            case "start":
                return "before the scenario"
            case "end":
                return "after the scenario"


class NodeMemory(Inspected, frozen=True, kw_only=True, tag="memory"):
    """`None` where the node cannot tell."""

    available_bytes: int | None
    wired_bytes: int | None


class NodeProcesses(Inspected, frozen=True, kw_only=True, tag="processes"):
    """The target's processes on a node."""

    main: str | None  # pid:start of its main process; None: it does not run
    orphans: int  # processes left behind by a main process that is gone
    cpu_s: float | None  # CPU time that the main process has used since its start
    node_t: float  # on the node's clock
    worker_cpu_s: dict[str, float] = msgspec.field(name="runner_cpu_s", default_factory=dict[str, float])
    # by pid:start of each worker, since its start; empty where it was not looked at


class ApiCall(Record, frozen=True, kw_only=True, tag="call"):
    """The rig asked the target to change something, outside of a soak's own deployments (scripted scenarios)."""

    what: Literal["deploy", "delete-deployment", "place", "delete-instance"]
    node: str
    asked_t: float
    status: int | None  # of the answer; None: no answer
    model: str | None = None
    subject: str | None = None  # the deployment or instance asked for or told
    unknown: bool = False  # it was asked for something that does not exist, on purpose
    detail: str = ""


class Step(Record, frozen=True, kw_only=True, tag="step"):
    """A step of a scripted scenario began or ended."""

    step: int
    text: str
    state: Literal["begun", "done", "failed"]
    detail: str = ""


class Expected(Record, frozen=True, kw_only=True, tag="expected"):
    """An expectation of a scripted scenario, judged by what the journal held then."""

    step: int
    text: str
    status: Literal["pass", "fail", "unknown"]
    evidence: str = ""


class Own(Record, frozen=True, kw_only=True, tag="own"):
    """The rig's own health over the interval that ends now."""

    interval_s: float
    lag_max_s: float  # worst event-loop lag
    cpu_percent: float
    rss_bytes: int
    open_files: int
    wall_drift_s: float


class Finding(Record, frozen=True, kw_only=True, tag="finding"):
    """Something worth a reader's attention that no other record says."""

    code: str
    text: str
    data: dict[str, Any] = {}


class ActivityDied(Record, frozen=True, kw_only=True, tag="activity_died"):
    """One of the activities of the run ended by an error. Such a run is never a pass."""

    activity: Literal["load", "injection", "observe", "prober", "cluster"]
    detail: str


AnyRecord: TypeAlias = (
    PhaseStarted
    | RunEnded
    | LockLost
    | RequestStarted
    | RequestEnded
    | CanaryAnswered
    | AnswerMalformed
    | HeldBack
    | FaultChanged
    | Unwedged
    | Redeployed
    | ViewChanged
    | Looked
    | Reachability
    | MasterSeen
    | EventSeen
    | EventLogRead
    | InstanceServed
    | Served
    | LogLine
    | ClockOffset
    | NodeMemory
    | NodeProcesses
    | ApiCall
    | Step
    | Expected
    | Own
    | Finding
    | ActivityDied
)
