"""Every figure of a report, said once: key, type with unit and format, meaning, where it comes from, heading.

`rig report --json`, its schema, column files, DataFrames, tables, tooltips, the glossary and `rig explain` are made
from this. `SCHEMA` grows when a key changes its meaning or goes; keys may be added at any time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias, TypeVar, get_args

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import CheckResult, Status
from rig.analysis.kinds import KindRow, Times, UnwedgingRow
from rig.analysis.recovery.decision import Class, Group, Recovery
from rig.analysis.recovery.faults import Fault
from rig.analysis.recovery.figures import Distribution, Figure
from rig.analysis.requests.counts import PERCENTILES, Counts, Latencies, Objectives, Quantiles
from rig.analysis.requests.during import Times as Windows
from rig.analysis.requests.tally import FaultCounts, Goodput, Lost, Tally
from rig.analysis.symptoms.looking import NodeLooked
from rig.analysis.verdict import EXIT_CODES, Verdict
from rig.journal.read import BrokenLine, ReadNotes
from rig.journal.records import ActivityDied, FaultState, Finding, HeldBack, Record, Redeployed, Unwedged
from rig.report.form import (
    BYTES,
    COUNT,
    FLAG,
    MOMENT,
    NUMBER,
    OBJECT,
    PERCENT,
    RATE,
    SECONDS,
    SHARE,
    TEXT,
    Form,
    Key,
    Shape,
    by_name,
    choice,
    constant,
    maybe,
    one,
    several,
)
from rig.report.joined import Joined
from rig.report.words import spread, stamp

SCHEMA: Final = 1

# A table: one key a line.
# fmt: off


_PER_FAULT: Final[tuple[tuple[str, str], ...]] = (
    ("exposed", "requests of the load that were exposed to it"),
    ("error", "errors attributed to it"),
    ("lost", "losses attributed to it"),
    ("lost_own_node", "losses attributed to it whose own node was faulted"),
)


RUN: Final = Shape[Analysis]("run", "The run",
    Key("name", TEXT, "name of the run's folder", lambda a: a.info.run, "run"),
    Key("started", TEXT, "wall-clock start, ISO 8601", lambda a: a.info.wall_start_iso),
    Key("duration_s", SECONDS, "time from the start to the last record", lambda a: a.end_t, "duration"),
    Key("planned_s", SECONDS, "length asked for", lambda a: a.info.duration_s),
    Key("finished", FLAG, "whether the run reached its planned end"),
    Key("reason", maybe(TEXT),
        "finished, interrupted, terminated, aborted or failed; null where the journal just stops",
        lambda a: None if a.ended is None else a.ended.reason),
    Key("detail", TEXT, "more on the reason", lambda a: "" if a.ended is None else a.ended.detail),
    Key("seed", COUNT, "seed of schedule and load", lambda a: a.info.seed),
    Key("pace", NUMBER, "factor by which every duration was divided", lambda a: a.info.pace),
    Key("embedded", FLAG, "whether the run used the embedded cluster", lambda a: a.info.embedded),
    Key("behaviour", maybe(TEXT), "behaviour of the embedded cluster", lambda a: a.info.behaviour),
    Key("rig_version", TEXT, "version of the rig", lambda a: a.info.rig_version),
    Key("rig_revision", maybe(TEXT), "source revision of the rig; `+` marks changes", lambda a: a.info.rig_revision),
    Key("inventory", maybe(TEXT), "name of the inventory", lambda a: a.info.inventory.get("name")),
    Key("workload", maybe(TEXT), "name of the workload", lambda a: a.info.workload.get("name")),
    Key("plan", maybe(TEXT), "name of the fault plan", lambda a: a.info.plan.get("name")),
    Key("target_revisions", by_name(maybe(TEXT)), "revision of the target on each node",
        lambda a: a.info.target_revisions),
    Key("expected_faults", COUNT, "faults the schedule was expected to reach", lambda a: a.info.expected_faults),
)

COUNTS: Final = Shape[Counts]("counts", "Counts of requests",
    Key("started", COUNT, "completed + error + lost + void + unfinished", label="requests"),
    Key("completed", COUNT, "a finish reason other than error arrived"),
    Key("error", COUNT, "the client was told that its request failed", label="errors"),
    Key("lost", COUNT, "neither a result nor an error, own node faulted or not", label="lost, all"),
    Key("void", COUNT, "not the cluster's doing: the controller stalled, slept or could not connect by itself"),
    Key("unfinished", COUNT, "a start without an end in the journal"),
    Key("exposed", COUNT, "in flight at a strike, or sent during an outage of its model"),
    Key("own_node", COUNT, "the entry node was faulted while the request depended on it", label="own node"),
    Key("own_rejoining", COUNT, "sent to a restarted node that had not caught up yet"),
    Key("error_own_node", COUNT, "errors whose own node was faulted", label="errors, own node"),
    Key("lost_own_node", COUNT, "lost, and the own node was faulted", label="lost, own node"),
    Key("lost_own_rejoining", COUNT, "lost, and the own node was rejoining"),
    Key("hung", COUNT, "lost: no token for the progress deadline"),
    Key("overdue", COUNT, "lost: still going at the total deadline"),
    Key("truncated", COUNT, "lost: a clean end without a finish reason or an error"),
    Key("empty", COUNT, "lost: a clean end without a token"),
    Key("lost_not_own_node", COUNT, "the headline: lost, and the own node was not faulted", label="lost"),
    Key("lost_without_deadlines", COUNT, "truncated + empty: lost whatever the rig's own deadlines are"),
    Key("excluded_share", SHARE, "share of requests the headline leaves out: own node and void", label="excluded"),
)
LOST_HOW: Final = Shape[Counts](
    "lost_how", "How requests were lost", *(COUNTS[how] for how in ("hung", "overdue", "truncated", "empty"))
)


def _percentiles(name: str, title: str, *more: Key[Sequence[float | None]]) -> Shape[Sequence[float | None]]:
    return Shape(
        name,
        title,
        Key("p50_s", maybe(SECONDS), "median, ± 2 %", lambda values: values[0], "p50"),
        Key("p90_s", maybe(SECONDS), "90th percentile, ± 2 %", lambda values: values[1], "p90"),
        Key("p99_s", maybe(SECONDS), "99th percentile, ± 2 %", lambda values: values[2], "p99"),
        *more,
    )


PERCENTILE: Final = _percentiles("percentiles", "Percentiles")
CHUNK_GAP: Final = _percentiles(
    "chunk_gap", "Gaps between chunks", Key("max_s", maybe(SECONDS), "longest gap", lambda values: values[3])
)
SENT_LATE: Final = _percentiles(
    "sent_late", "Sent late", Key("max_s", maybe(SECONDS), "longest delay", lambda values: values[3])
)
QUANTILES: Final = Shape[Quantiles]("quantiles", "Quantiles",
    Key("count", COUNT, "number of completed requests with such a time"),
    Key("good", one(PERCENTILE), "completed requests alone"),
    Key("failures_infinite", one(PERCENTILE),
        "every failure counted as infinite (null where the quantile falls on one)", lambda q: q.with_failures),
)
_LATENCY: Final[tuple[Key[Latencies], ...]] = (
    Key("completed", COUNT, "completed requests", lambda values: values.good),
    Key("failed", COUNT, "requests that count as infinite: errors and losses"),
    Key("met", COUNT, "completed requests that met every objective (all of them without objectives)"),
    Key("tokens", COUNT, "tokens of all answers"),
    Key("ttft", one(QUANTILES), "time to the first token; streams only", lambda v: v.quantiles()["ttft"], "TTFT"),
    Key("itl", one(QUANTILES), "inter-token latency: the mean of each stream; streams only",
        lambda v: v.quantiles()["itl"], "ITL"),
    Key("e2el", one(QUANTILES), "end-to-end latency: to the end of the answer",
        lambda v: v.quantiles()["e2el"], "E2EL"),
    Key("chunk_gap", one(CHUNK_GAP), "time between two chunks that carry tokens",
        lambda values: (*values.chunk_gap.quantiles(PERCENTILES), values.gap_max_s)),
)
LATENCY: Final = Shape[Latencies]("latency", "Latencies", *_LATENCY)


def _of_latencies(key: Key[Latencies]) -> Key[Windows]:
    return Key(key.name, key.form, key.meaning, lambda windows: key.of(windows.latencies), key.label)


DURING: Final = Shape[Windows]("latency_during", "Latencies during faults",
    Key("windows", COUNT, "number of windows: one for each effective fault and model"),
    Key("length_s", SECONDS, "length of all windows together", label="total length"),
    *map(_of_latencies, _LATENCY),
)
HELD_BACK: Final = Shape[HeldBack]("held_back", "Held back",
    Key("bound", COUNT, "most requests in flight at once: `arrivals.max_concurrency`"),
    Key("held", COUNT, "requests that had to wait for a place in flight when they were due"),
    Key("longest_s", SECONDS, "longest wait for a place"),
    Key("unsent", COUNT, "requests that were due before the load stopped and never sent: in no other count"),
)
OBJECTIVES: Final = Shape[Objectives]("objectives", "Objectives",
    Key("ttft_s", maybe(SECONDS), "time to the first token, of streams", label="TTFT"),
    Key("itl_s", maybe(SECONDS), "time for each token after the first, of streams", label="ITL"),
    Key("e2el_s", maybe(SECONDS), "time to the end of the answer", label="E2EL"),
)


@dataclass(frozen=True)
class Judged:
    """Objectives, and how many requests met them."""

    objectives: Objectives
    goodput: Goodput


GOODPUT: Final = Shape[Judged]("goodput", "Goodput",
    Key("objectives", one(OBJECTIVES), "objectives of the workload, as the run used them"),
    Key("met", COUNT, "requests that met every objective", lambda judged: judged.goodput.met),
    Key("share", maybe(SHARE), "share of the requests that ended", lambda judged: judged.goodput.share),
    Key("per_s", maybe(RATE), "requests a second, from the first one sent to the end of the last one",
        lambda judged: judged.goodput.per_s),
)

LOST: Final = Shape[Lost]("lost", "A lost request",
    Key("id", TEXT, "id of the request, as `rig show --request` takes it", label="request"),
    Key("how", choice("hung", "overdue", "truncated", "empty"), "how it was lost"),
    Key("model", TEXT, "model asked for"),
    Key("entry", TEXT, "entry node, by its name in the inventory"),
    Key("streamed", FLAG, "whether a stream was asked for"),
    Key("started_t", MOMENT, "when it was sent", label="sent at"),
    Key("stalled_t", MOMENT, "when its progress stopped; when it was sent, if it made none", label="stalled at"),
    Key("ended_t", MOMENT, "when the client gave up or the answer ended", label="ended at"),
    Key("own", maybe(choice("node", "rejoining")), "`node`: its own node was faulted; `rejoining`: it was catching up"),
    Key("fault", maybe(COUNT), "the fault it is attributed to"),
    Key("unwedging", maybe(COUNT), "the fault after which the rig's own restarts made it fail"),
    Key("evidence", TEXT, "the last the client saw, bounded"),
)
FaultPair: TypeAlias = tuple[Fault, FaultCounts]


def _fault(name: str) -> Callable[[FaultPair], Any]:
    return lambda pair: getattr(pair[0], name)


def _counted(name: str) -> Callable[[FaultPair], Any]:
    return lambda pair: getattr(pair[1], name)


FAULT: Final = Shape[FaultPair]("fault", "A fault",
    Key("fault", COUNT, "number in the schedule, from 0; -1 for `rig inject`", _fault("number")),
    *(
        Key(name, form, meaning, _fault(name))
        for name, form, meaning in (
            ("kind", TEXT, "kind of fault"),
            ("aim", TEXT, "aim, as scheduled"),
            ("opened_t", MOMENT, "time of its first record"),
            ("state", choice(*get_args(FaultState)), "last state it was in"),
            ("nodes", several(TEXT), "nodes that were hit, resolved at the strike"),
            ("processes_hit", several(TEXT), "nodes whose target process was killed or stopped"),
            ("clients_cut", several(TEXT), "nodes whose client path was cut"),
            ("model", maybe(TEXT), "model whose process was killed"),
            ("hold_s", SECONDS, "hold, as scheduled"),
            ("struck_t", maybe(MOMENT), "when it took effect"),
            ("struck_error_s", SECONDS, "clock error of the strike"),
            ("healed_t", maybe(MOMENT), "when it was undone"),
            ("healed_error_s", SECONDS, "clock error of the heal"),
            ("closed_t", maybe(MOMENT), "when it reached its last state"),
            ("skipped", FLAG, "the precheck refused it"),
            ("ineffective", FLAG, "no evidence that it took effect"),
            ("invalid", FLAG, "an error interrupted it"),
            ("unhealed", FLAG, "it could not be undone"),
            ("stopped", FLAG, "skipped because the run had reached its end"),
            ("reason", TEXT, "reason for a skip or an error"),
            ("evidence", by_name(OBJECT), "evidence by state, as the node's script reported it"),
            ("effective", FLAG, "struck, with evidence that was never withdrawn: only such a fault counts"),
        )
    ),
    *(Key(name, COUNT, meaning, _counted(name)) for name, meaning in _PER_FAULT),
)
RECOVERY: Final = Shape[Recovery]("recovery", "A recovery",
    Key("fault", COUNT, "number of the fault"),
    Key("fault_kind", TEXT, "kind of the fault"),
    Key("model", TEXT, "model"),
    Key("class", choice(*get_args(Class)),
        "survived (same instance), replaced (a new one), unaffected, not recovered, censored (cut short), unknown",
        lambda r: r.recovery_class),
    Key("group", maybe(choice(*get_args(Group))), "medians it counts in, also where it never ended"),
    Key("strike_t", MOMENT, "when the fault struck"),
    Key("heal_t", maybe(MOMENT), "when it was healed"),
    Key("until_t", MOMENT, "end of the time looked at: next strike, unwedging, end of the journal"),
    Key("time_to_serve_s", maybe(SECONDS), "from the heal to the end of the first success that started after it",
        label="time to serve"),
    Key("serve_from_strike_s", maybe(SECONDS), "time to serve, measured from the strike"),
    Key("sustained_s", maybe(SECONDS), "from the heal to the first success after which nothing failed",
        label="sustained recovery"),
    Key("sustained_from_strike_s", maybe(SECONDS), "sustained recovery, measured from the strike"),
    Key("at_least_s", SECONDS, "how long a recovery that did not end was watched"),
    Key("outage_s", SECONDS, "from the strike until the model served for good", label="outage"),
    Key("silence_s", SECONDS, "longest time in the outage with nothing completed for the model", label="silence"),
    Key("resolution_s", SECONDS, "largest gap between attempts: recovery may be that much earlier", label="resolution"),
    Key("error_s", SECONDS, "clock error of strike and heal"),
    Key("failures", COUNT, "failures of the model that are attributed to the fault"),
    Key("late_failures", COUNT, "failures after sustained recovery"),
    Key("instance_before", maybe(TEXT), "instance that served before the fault"),
    Key("instance_after", maybe(TEXT), "instance that served after it"),
    Key("unwedged", FLAG, "whether the rig restarted something"),
    Key("unwedge_cost_s", maybe(SECONDS), "from the rig's restart to the first success after it"),
    Key("span_end_t", MOMENT, "until when failures are this fault's"),
)

BOUNDED: Final = Shape[Figure]("figure", "A figure",
    Key("value_s", SECONDS, "seconds"),
    Key("above", FLAG, "the true value is above `value_s`: the figure falls on a recovery that never ended"),
)
DISTRIBUTION: Final = Shape[Distribution]("distribution", "A distribution",
    Key("count", COUNT, "number of values, those that never ended included"),
    *(
        Key[Distribution](name, maybe(one(BOUNDED)), f"{meaning}; null without values")
        for name, meaning in (("median", "median"), ("p90", "90th percentile"), ("worst", "longest value"))
    ),
)
_SPREAD: Final = Form(one(DISTRIBUTION).schema, write=spread, plain=DISTRIBUTION.plain, shapes=(DISTRIBUTION,))
TIMES: Final = Shape[Times]("times", "Times",
    Key("time_to_serve", _SPREAD, "from the heal to the first success that started after it", label="time to serve"),
    Key("serve_from_strike", _SPREAD, "from the strike to the first success after the heal", label="from the strike"),
    Key("sustained", _SPREAD, "from the heal to the first success after which nothing failed", label="sustained"),
)


def _class(name: Class, meaning: str) -> Key[KindRow]:
    return Key(name, COUNT, meaning, lambda row: row.classes[name])


CLASSES: Final = Shape[KindRow]("classes", "Classes of recoveries",
    _class("survived", "recovered, served by the same instance as before"),
    _class("replaced", "recovered, served by a new instance"),
    _class("unaffected", "the model never failed and never fell silent"),
    _class("not recovered", "no sustained recovery within `settle`, or only after the rig stepped in"),
    _class("censored", "cut short: the next strike or the end of the run came before the recovery"),
    _class("unknown", "recovered, but whether by the same instance cannot be told"),
)
KIND: Final = Shape[KindRow]("kind", "A kind of fault",
    Key("kind", TEXT, "kind of fault", label="fault"),
    Key("planned", COUNT, "faults of this kind that the run reached"),
    Key("effective", COUNT, "faults with evidence that they took effect"),
    Key("skipped", COUNT, "faults the precheck refused"),
    Key("ineffective", COUNT, "faults without evidence that they took effect"),
    Key("invalid", COUNT, "faults interrupted by an error"),
    Key("unhealed", COUNT, "faults that could not be undone"),
    Key("classes", one(CLASSES), "recoveries by class", lambda row: row),
    Key("times", by_name(one(TIMES)), "times of the groups `survived`, `replaced` and `affected` (all)"),
    Key("outage", _SPREAD, "outages of affected models"),
    Key("silence", _SPREAD, "silences of affected models"),
    Key("resolution_worst_s", maybe(SECONDS), "coarsest resolution of its recoveries", label="resolution"),
    Key("unwedged", COUNT, "recoveries in which the rig stepped in"),
    *(Key[KindRow](name, COUNT, meaning, label=COUNTS[name].label) for name, meaning in _PER_FAULT),
)
UNWEDGING: Final = Shape[UnwedgingRow]("unwedging", "An unwedging",
    Key("fault", COUNT, "number of the fault after which the rig stepped in"),
    Key("from_t", MOMENT, "when the first restart began"),
    Key("to_t", MOMENT, "when the last restart was done"),
    Key("nodes", several(TEXT), "nodes that were restarted"),
    Key("exposed", COUNT, "requests in flight at the restart, or sent before their model served again"),
    *(Key[UnwedgingRow](name, COUNT, meaning) for name, meaning in _PER_FAULT[1:]),
)
CHECK: Final = Shape[CheckResult]("check", "A check",
    Key("name", TEXT, "name of the check", label="check"),
    Key("promise", TEXT, "what must hold"),
    Key("status", choice(*get_args(Status)), "result of the check"),
    Key("summary", TEXT, "the result in one line", label="result"),
    Key("evidence", replace(several(TEXT), cell="\n".join), "times, ids and faults; at most 20 lines"),
)


R = TypeVar("R", bound=Record)


def _record(name: str, title: str, record: type[R], *keys: Key[R]) -> Shape[R]:
    """Of the journal, with its kind and time."""
    tag = str(record.__struct_config__.tag)
    return Shape[R](
        name,
        title,
        Key("kind", constant(tag), "kind of record", lambda _: tag),
        Key("t", MOMENT, "when written"),
        *keys,
    )


FINDING: Final = _record("finding", "A finding", Finding,
    Key("code", TEXT, "name of the finding"),
    Key("text", TEXT, "the finding in words"),
    Key("data", OBJECT, "facts it rests on"),
)
DIED: Final = _record("activity_died", "A dead activity", ActivityDied,
    Key("activity", choice("load", "injection", "observe", "prober", "cluster"), "which activity"),
    Key("detail", TEXT, "error that ended it"),
)
REDEPLOYED: Final = _record("redeployed", "A deployment posted", Redeployed,
    Key("model", TEXT, "model of the deployment"),
    Key("reason", choice("setup", "vanished"), "`setup`, or `vanished`: it was gone and posted again"),
    Key("ok", FLAG, "whether the target accepted it"),
    Key("detail", TEXT, "answer of the target"),
)
UNWEDGED: Final = _record("unwedged", "A node restarted", Unwedged,
    Key("fault", COUNT, "number of the fault"),
    Key("node", TEXT, "name of the node in the inventory"),
    Key("started_t", MOMENT, "when the rig stepped in"),
    Key("ended_t", MOMENT, "when the restart was done"),
    Key("ok", FLAG, "whether the node served again"),
    Key("act", choice("restart", "start"), "`restart`, or `start` where the main process was gone"),
    Key("cut_short", FLAG, "whether the end of the run cut it short: the node's own script goes on"),
    Key("detail", TEXT, "what was done"),
    Key("master", maybe(FLAG), "whether the node claimed to be master right before; null: not known"),
)
LOOKING: Final = Shape[NodeLooked]("looking", "Cost of looking at a node",
    Key("seconds", SECONDS, "time over which the node was polled"),
    Key("asked", COUNT, "polls sent"),
    Key("unanswered", COUNT, "polls refused, reset, or not answered in time"),
    Key("misread", COUNT, "answers that were not understood"),
    Key("answer_s", SECONDS, "time spent on all answers"),
    Key("longest_s", SECONDS, "time spent on the slowest answer"),
    Key("per_s", maybe(RATE), "polls a second; null if it was never polled"),
    Key("share", maybe(SHARE), "share of the node's time spent on answers, at most; null if it was never polled"),
)
CONTROLLER: Final = Shape[Analysis]("controller", "The controller",
    Key("records", COUNT, "records of the controller's health", lambda a: a.stalls.records),
    Key("lag_max_s", SECONDS, "worst lateness of its event loop", lambda a: a.stalls.lag_max_s),
    Key("stalls", COUNT, "times it stalled or slept", lambda a: a.stalls.count),
    Key("stalled_s", SECONDS, "total time it stalled or slept", lambda a: a.stalls.total_s),
    Key("cpu_max_percent", PERCENT, "highest CPU use, in percent of one core", lambda a: a.stalls.cpu_max_percent),
    Key("rss_max_bytes", BYTES, "largest resident memory", lambda a: a.stalls.rss_max_bytes),
    Key("open_files_max", COUNT, "most open files", lambda a: a.stalls.open_files_max),
    Key("died", several(one(DIED)), "activities that an error ended"),
    Key("orphan_ends", COUNT, "ends of requests without a start", lambda a: a.orphans),
    Key("repeated_starts", COUNT, "starts of an id that was in flight", lambda a: a.repeated),
)
BROKEN: Final = Shape[BrokenLine]("broken_line", "A broken line",
    Key("file", TEXT, "name of the file"),
    Key("line", COUNT, "number of the line, from 1"),
    Key("reason", TEXT, "what is wrong with it"),
)
JOURNAL: Final = Shape[ReadNotes]("journal", "The journal",
    Key("lines", COUNT, "lines read"),
    Key("torn", FLAG, "whether the last line was incomplete, and dropped"),
    Key("unknown", by_name(COUNT), "records of kinds this rig does not know"),
    Key("broken", several(one(BROKEN)), "lines that are no records, the first 100"),
    Key("broken_count", COUNT, "lines that are no records, all of them"),
)
DAMAGED: Final = Shape[Analysis]("damaged", "Damaged answers",
    Key("count", COUNT, "number of damaged answers", lambda a: a.requests.damaged),
    Key("ids", several(TEXT), "ids of the first 200", lambda a: a.requests.damaged_ids),
)


@dataclass(frozen=True)
class Reported:
    analysis: Analysis
    verdict: Verdict

    @property
    def tally(self) -> Tally:
        return self.analysis.requests


def _sent_late(analysis: Analysis) -> Sequence[float | None] | None:
    if not analysis.settings.open_loop:
        return None
    return (*analysis.requests.late_quantiles(PERCENTILES), analysis.requests.late_max_s)


def _goodput(analysis: Analysis) -> Judged | None:
    found = analysis.requests.goodput(analysis.settings.objectives)
    return None if found is None else Judged(analysis.settings.objectives, found)


def faults_of(analysis: Analysis) -> list[FaultPair]:
    counts = analysis.requests.by_fault
    return [(fault, counts.get(fault.number) or FaultCounts()) for fault in analysis.faults]


_COUNTS_BY: Final = by_name(one(COUNTS))
_LATENCY_BY: Final = by_name(one(LATENCY))
REPORT: Final = Shape[Reported]("report", "The report",
    Key("schema", constant(SCHEMA), "version of this format", lambda _: SCHEMA),
    Key("stamp", maybe(TEXT), "line at the top of every report of a run on the embedded cluster; null on real nodes",
        lambda r: stamp(r.analysis)),
    Key("verdict", choice(*EXIT_CODES), "worst result of the checks: fail, then unknown", lambda r: r.verdict.word),
    Key("exit_code", choice(*sorted(EXIT_CODES.values())), "exit code of `rig report` and `rig soak`",
        lambda r: r.verdict.exit_code),
    Key("run", one(RUN), "the run: when, how long, with which files", lambda r: r.analysis),
    Key("requests", one(COUNTS), "requests of the load, without probes", lambda r: r.tally.total),
    Key("lost_how", one(LOST_HOW), "lost requests by how they were lost", lambda r: r.tally.total),
    Key("requests_calm", one(COUNTS), "requests in calm weather: touched by neither a fault nor an unwedging",
        lambda r: r.tally.calm),
    Key("requests_baseline", one(COUNTS), "requests before the first fault", lambda r: r.tally.baseline),
    Key("requests_by_model", _COUNTS_BY, "requests by model", lambda r: r.tally.by_model),
    Key("requests_by_entry", _COUNTS_BY, "requests by entry node", lambda r: r.tally.by_entry),
    Key("requests_by_streamed", _COUNTS_BY, "requests `streamed` and `not streamed`", lambda r: r.tally.by_streamed),
    Key("latency", _LATENCY_BY, "latencies of `all` requests, then by model",
        lambda r: {"all": r.tally.all_latencies(), **r.tally.latencies}),
    Key("latency_by_entry", _LATENCY_BY, "latencies by entry node", lambda r: r.tally.latencies_by_entry),
    Key("latency_by_streamed", _LATENCY_BY, "latencies of requests `streamed` and `not streamed`",
        lambda r: r.tally.latencies_by_streamed),
    Key("latency_by_weather", _LATENCY_BY, "latencies of requests in `calm` weather and `around faults` (all others)",
        lambda r: r.tally.latencies_by_weather),
    Key("latency_by_fault", by_name(one(DURING)),
        "latencies by kind of fault: requests in flight between a strike and the model's sustained recovery",
        lambda r: r.analysis.during),
    Key("latency_from_start", maybe(one(LATENCY)),
        "latencies measured from the moment of sending; null in a closed loop, where all are",
        lambda r: r.tally.from_start if r.analysis.settings.open_loop else None),
    Key("sent_late", maybe(one(SENT_LATE)), "how long after it was due each request was sent; null in a closed loop",
        lambda r: _sent_late(r.analysis)),
    Key("held_back", maybe(one(HELD_BACK)),
        "requests an open loop sent late, or never, for want of a place in flight; null if there were none",
        lambda r: r.analysis.held_back),
    Key("goodput", maybe(one(GOODPUT)), "requests that met every objective of the workload; null without objectives",
        lambda r: _goodput(r.analysis)),
    Key("lost", several(one(LOST)), "lost requests whose own node was not faulted, the first 200",
        lambda r: r.tally.listed),
    Key("lost_own_node", several(one(LOST)), "lost requests whose own node was faulted, the first 200",
        lambda r: r.tally.listed_own),
    Key("damaged", one(DAMAGED),
        "completed, but with a token count unlike the server's, or without the content it claims",
        lambda r: r.analysis),
    Key("unclean_end", COUNT, "completed requests whose connection did not end properly after the finish reason",
        lambda r: r.tally.unclean),
    Key("probes", one(COUNTS), "the rig's own probes", lambda r: r.analysis.probes.total),
    Key("faults", several(one(FAULT)), "faults the run reached, in the order of the schedule",
        lambda r: faults_of(r.analysis)),
    Key("recoveries", several(one(RECOVERY)), "one for each effective fault and model",
        lambda r: r.analysis.recoveries),
    Key("kinds", several(one(KIND)), "one for each kind of fault", lambda r: r.analysis.kinds),
    Key("unwedging", several(one(UNWEDGING)),
        "one for each fault after which the rig stepped in: the effects of its restarts",
        lambda r: r.analysis.unwedgings),
    Key("controller", one(CONTROLLER), "health of the rig's own process", lambda r: r.analysis),
    Key("looking", by_name(one(LOOKING)), "cost of the rig's polls, by node", lambda r: r.analysis.watch.looking.nodes),
    Key("findings", several(one(FINDING)), "observations that need attention beyond the figures; the first 200",
        lambda r: r.analysis.findings),
    Key("redeployed", several(one(REDEPLOYED)), "deployments the rig posted; the first 200",
        lambda r: r.analysis.redeployed),
    Key("unwedged", several(one(UNWEDGED)), "nodes the rig restarted because a model did not recover; the first 200",
        lambda r: r.analysis.unwedged),
    Key("journal", one(JOURNAL), "observations made while reading the journal", lambda r: r.analysis.notes),
    Key("checks", several(one(CHECK)), "every check and its result", lambda r: r.verdict.checks),
)


def _end(name: str) -> Callable[[Joined], Any]:
    return lambda joined: None if joined.end is None else getattr(joined.end, name)


def _gap(name: str) -> Callable[[Joined], Any]:
    return lambda joined: None if joined.end is None else getattr(joined.end.gaps, name)


def _judged(name: str) -> Callable[[Joined], Any]:
    return lambda joined: None if joined.judged is None else getattr(joined.judged, name)


def _start(name: str) -> Callable[[Joined], Any]:
    return lambda joined: getattr(joined.start, name)


REQUEST: Final = Shape[Joined]("request", "A request or probe",
    Key("id", TEXT, "id of the request", _start("id")),
    Key("source", TEXT, "`load` or `probe`", _start("source")),
    Key("client", TEXT, "client that sent it", _start("client")),
    Key("model", TEXT, "model asked for", _start("model")),
    Key("entry", TEXT, "entry node", _start("entry")),
    Key("streamed", FLAG, "whether a stream was asked for", _start("streamed")),
    Key("prompt_tokens", COUNT, "length of the prompt", _start("prompt_tokens")),
    Key("max_tokens", COUNT, "tokens asked for", _start("max_tokens")),
    Key("planned_t", MOMENT, "when it was due", _start("planned_t")),
    Key("started_t", MOMENT, "when sending began",
        lambda joined: joined.start.t if joined.end is None else joined.end.started_t),
    Key("connected_t", MOMENT, "when the connection stood", _end("connected_t")),
    Key("first_byte_t", MOMENT, "first byte of the answer", _end("first_byte_t")),
    Key("first_token_t", MOMENT, "first token", _end("first_token_t")),
    Key("last_token_t", MOMENT, "last token", _end("last_token_t")),
    Key("last_progress_t", MOMENT, "last token, or last advance of the prefill", _end("last_progress_t")),
    Key("ended_t", MOMENT, "end of the answer", _end("ended_t")),
    Key("outcome", TEXT, "completed, error, lost, void or unfinished, as counted", lambda joined: joined.fate),
    Key("how", TEXT, "how it was lost", _end("how")),
    Key("own", TEXT, "`node`: own node faulted; `rejoining`: own node catching up", _judged("own")),
    Key("exposed", FLAG, "whether it was exposed to an effective fault", _judged("exposed")),
    Key("fault", COUNT, "fault its failure is attributed to", _judged("fault")),
    Key("unwedging", COUNT, "fault after which the rig's own restarts made it fail", _judged("unwedging")),
    Key("windows", TEXT,
        "faults in whose window it was, with commas: from the strike to the model's sustained recovery",
        lambda joined: ",".join(map(str, joined.windows)) or None),
    Key("status", COUNT, "HTTP status", _end("status")),
    Key("response_id", TEXT, "id of the answer", _end("response_id")),
    Key("tokens", COUNT, "chunks with content", _end("tokens")),
    Key("usage_tokens", COUNT, "tokens by the server's count", _end("usage_tokens")),
    Key("finish_reason", TEXT, "finish reason", _end("finish_reason")),
    Key("gap_count", COUNT, "gaps between chunks with tokens", _gap("count")),
    Key("gap_sum_s", SECONDS, "sum of the gaps", _gap("sum_s")),
    Key("gap_max_s", SECONDS, "longest gap", _gap("max_s")),
    *(
        Key(name, TEXT, meaning, _end(name))
        for name, meaning in (
            ("unclean_end", "what was wrong after the finish reason"),
            ("damaged", "what was wrong with the token count"),
            ("own_failure", "failure of the rig itself: such a request is void"),
            ("evidence", "what the client saw: error class, message, tail of the body"),
        )
    ),
)
