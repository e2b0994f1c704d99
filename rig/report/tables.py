"""The tables of a report. Their headings, formats and meanings are those of the figures."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.kinds import KindRow
from rig.analysis.recovery.faults import Fault
from rig.analysis.requests.counts import Latencies, Quantiles
from rig.analysis.requests.tally import Lost
from rig.analysis.verdict import Verdict
from rig.report.figures import CHECK, CLASSES, COUNTS, DURING, GOODPUT, KIND, LATENCY, LOST, PERCENTILE, TIMES
from rig.report.form import Key
from rig.report.table import Column, Table, cells, column
from rig.report.words import spread
from rig.written import NOTHING, duration, moment, percent

MAX_LOST_ROWS: Final = 20
MAX_FINDINGS: Final = 20
_OUTCOMES: Final = tuple(
    COUNTS[name]
    for name in (
        "started", "completed", "error", "lost_not_own_node", "lost_own_node", "void", "unfinished", "exposed",
        "own_node", "own_rejoining", "excluded_share",
    )
)  # fmt: skip
_CLASSES: Final = tuple(CLASSES)[:-1]
_TIMES: Final = ("ttft", "itl", "e2el")


def requests(analysis: Analysis) -> Table:
    """One row for all, one for calm weather, then by model and by entry node."""
    result = analysis.requests
    groups = {"all": result.total, "calm weather": result.calm, "before the first fault": result.baseline}
    if len(result.by_model) > 1:
        groups |= result.by_model
    groups |= {f"through {name}": counts for name, counts in sorted(result.by_entry.items())}
    how = ", ".join(f"{count} {name}" for name, count in result.total.how().items() if count) or "none"
    note = f"Lost: {how}. Whatever the rig's own deadlines are: {result.total.lost_without_deadlines}."
    held = analysis.held_back
    if held is not None:
        note += (
            f" With {held.bound} in flight, {held.held} requests had to wait for a place, at most "
            f"{duration(held.longest_s)}; {held.unsent} more were due and never sent, and are in no count."
        )
    rows = tuple((name, *cells(_OUTCOMES, counts)) for name, counts in groups.items() if counts.started)
    return Table("Requests", (Column("group"), *map(column, _OUTCOMES)), rows, note)


_PLANNED: Final = tuple(KIND[name] for name in ("planned", "effective", "skipped"))
_FAILED: Final = (KIND["exposed"], KIND["error"])


def faults(analysis: Analysis) -> Table:
    """One row for each kind, and one for the rig's own restarts. The classes count a fault once for each model."""
    columns = (KIND["kind"], *_PLANNED, *_CLASSES, *_FAILED, COUNTS["lost_not_own_node"], COUNTS["lost_own_node"])
    note = "From survived to censored: models after each effective fault. " + _odd(analysis)
    rows = (*(_fault_row(row) for row in analysis.kinds), *_unwedging_row(analysis))
    return Table("Faults", tuple(map(column, columns)), rows, note.strip())


def _fault_row(row: KindRow) -> tuple[str, ...]:
    counted = cells((KIND["kind"], *_PLANNED, *_CLASSES, *_FAILED), row)
    return (*counted, f"{row.lost - row.lost_own_node}", f"{row.lost_own_node}")


def _unwedging_row(analysis: Analysis) -> list[tuple[str, ...]]:
    """The rig's own restarts are no fault and not calm: their effects have a row of their own."""
    rows = analysis.unwedgings
    if not rows:
        return []
    lost, own = sum(row.lost for row in rows), sum(row.lost_own_node for row in rows)
    numbers = (sum(row.exposed for row in rows), sum(row.error for row in rows), lost - own, own)
    return [("unwedging", NOTHING, f"{len(rows)}", *[NOTHING] * (1 + len(_CLASSES)), *map(str, numbers))]


def _odd(analysis: Analysis) -> str:
    parts = [
        f"{row.kind}: {count} {word}"
        for row in analysis.kinds
        for count, word in (
            (row.ineffective, "without effect"),
            (row.invalid, "invalid"),
            (row.unhealed, "not healed"),
            (row.classes["unknown"], "recovered by an unknown instance"),
            (row.unwedged, "unwedged by the rig"),
        )
        if count
    ]
    return f"Also: {'; '.join(parts)}." if parts else ""


def recovery(analysis: Analysis) -> Table:
    """One row for each kind, times from the heal."""
    groups = tuple(
        (group, TIMES[name]) for group in ("survived", "replaced") for name in ("time_to_serve", "sustained")
    )
    from_strike = TIMES["serve_from_strike"]
    columns = (
        column(KIND["kind"]),
        *(column(key, f"{group}: {key.heading}") for group, key in groups),
        column(from_strike),
        column(KIND["outage"]),
        column(KIND["silence"], "silence, worst"),
        column(KIND["resolution_worst_s"]),
    )
    rows = tuple(
        (
            row.kind,
            *(key.write(row.times[group]) for group, key in groups),
            from_strike.write(row.times["affected"]),
            spread(row.outage),
            _worst(row),
            KIND["resolution_worst_s"].write(row),
        )
        for row in analysis.kinds
    )
    note = (
        "Median / p90 / worst (one value where they agree), from the heal unless the heading says otherwise. "
        "Unrecovered faults count as infinite; "
        '">" marks a lower bound.'
    )
    return Table("Recovery", columns, rows, note)


def _worst(row: KindRow) -> str:
    return NOTHING if row.silence.worst is None else duration(row.silence.worst.value_s)


def _groups(analysis: Analysis) -> dict[str, Latencies]:
    """All, then by model, by entry node, and by weather."""
    result = analysis.requests
    groups: dict[str, Latencies] = {"all": result.all_latencies(), **result.latencies}
    groups |= {f"through {name}": values for name, values in sorted(result.latencies_by_entry.items())}
    return groups


def latency(analysis: Analysis) -> Table:
    """Of completed requests; beside it, with failures counted as infinite, where that makes a difference."""
    result = analysis.requests
    groups = _groups(analysis) | _known(result.latencies_by_weather)
    note = "In brackets: with failures counted as infinite. Quantiles are within 2 %."
    if analysis.settings.open_loop:
        groups |= {"all, from when sent": result.from_start}
        late = [duration(value) for value in result.late_quantiles((0.5, 0.99))]
        note += f" Measured from when each request was due; they were sent {late[0]} later at p50, {late[1]} at p99."
    columns = (Column("group"), column(LATENCY["completed"]), *_TIME_COLUMNS)
    rows = tuple((name, f"{values.good}", *_latency_cells(values)) for name, values in groups.items())
    return Table("Latency", columns, rows, note)


def during(analysis: Analysis) -> Table | None:
    """One row for each kind of fault that struck, in the order of the other tables; None without any."""
    if not analysis.during:
        return None
    asked = analysis.settings.objectives.any
    counted = tuple(DURING[name] for name in ("windows", "length_s", "completed", "failed"))
    columns = (
        column(KIND["kind"]),
        *map(column, counted),
        *((column(GOODPUT["share"], "met"),) if asked else ()),
        *_TIME_COLUMNS,
    )
    rows = tuple(
        (
            row.kind,
            *cells(counted, times),
            *((_share_met(times.latencies),) if asked else ()),
            *_latency_cells(times.latencies),
        )
        for row in analysis.kinds
        if (times := analysis.during.get(row.kind)) is not None
    )
    note = (
        "Requests in flight between a strike and the sustained recovery of their model (the heal, where the model was "
        "unaffected). In brackets: with failures counted as infinite."
    )
    return Table("Latency during faults", columns, rows, note)


def _share_met(values: Latencies) -> str:
    ended = values.good + values.failed
    return percent(values.met / ended) if ended else NOTHING


_TIME_COLUMNS: Final = tuple(
    Column(
        f"{LATENCY[name].heading} {share.heading}", f"{LATENCY[name].meaning}; {share.meaning}", LATENCY[name].heading
    )
    for name in _TIMES
    for share in PERCENTILE
)


def _known(groups: Mapping[str, Latencies]) -> dict[str, Latencies]:
    return {name: values for name, values in sorted(groups.items()) if values.good + values.failed}


def goodput(analysis: Analysis) -> Table | None:
    """How many requests met the objectives of the workload; None without objectives."""
    wanted, result = analysis.settings.objectives, analysis.requests
    found = result.goodput(wanted)
    if found is None:
        return None
    limits = (("TTFT", wanted.ttft_s), ("ITL", wanted.itl_s), ("E2EL", wanted.e2el_s))
    asked = ", ".join(f"{name} ≤ {duration(limit)}" for name, limit in limits if limit is not None)
    groups = _groups(analysis) | {**result.latencies_by_streamed, **result.latencies_by_weather}
    rows = tuple(
        (name, f"{values.met}", _share_met(values)) for name, values in groups.items() if values.good + values.failed
    )
    rate = "" if found.per_s is None else f" {found.per_s:.2f} requests/s."
    note = f"Met: {asked}.{rate} A request that is not streamed has no TTFT and no ITL to meet."
    return Table("Goodput", (Column("group"), column(GOODPUT["met"]), column(GOODPUT["share"])), rows, note)


def _latency_cells(values: Latencies) -> list[str]:
    return [_pair(*both) for name in _TIMES for both in _both(values.quantiles()[name])]


def _both(quantiles: Quantiles) -> list[tuple[float | None, float | None]]:
    return list(zip(quantiles.good, quantiles.with_failures, strict=True))


def _pair(good_s: float | None, with_failures_s: float | None) -> str:
    good, other = duration(good_s), duration(with_failures_s)
    return good if good == other else f"{good} ({other})"


_LOST: Final[tuple[Key[Lost], ...]] = tuple(
    LOST[name] for name in ("id", "how", "model", "entry", "started_t", "stalled_t", "ended_t")
)


def lost(analysis: Analysis, limit: int = MAX_LOST_ROWS) -> Table | None:
    """Lost requests, own node not faulted first; at most `limit`."""
    listed = [*analysis.requests.listed, *analysis.requests.listed_own]
    if not listed:
        return None
    aims = {fault.number: f"fault {fault.number} ({fault.kind})" for fault in analysis.faults}
    rows = tuple((*cells(_LOST, request), _blame(request, aims), request.own or NOTHING) for request in listed[:limit])
    columns = (*map(column, _LOST), column(LOST["fault"]), column(LOST["own"]))
    more = analysis.requests.total.lost - len(rows)
    return Table("Lost requests", columns, rows, f"and {more} more" if more > 0 else "")


def _blame(request: Lost, aims: Mapping[int, str]) -> str:
    if request.unwedging is not None:
        return f"unwedging after fault {request.unwedging}"
    return "none near" if request.fault is None else aims.get(request.fault, f"fault {request.fault}")


def checks(verdict: Verdict, *, exercised: bool = True) -> Table | None:
    """Those that found something out, the worst first; or those that nothing called upon. None without any."""
    order = ("fail", "unknown", "pass") if exercised else ("not-exercised",)
    shown = sorted(
        (check for check in verdict.checks if check.status in order), key=lambda check: order.index(check.status)
    )
    keys = (CHECK["status"], CHECK["name"], CHECK["summary"])
    title = "Checks" if exercised else "Checks not exercised"
    return Table(title, tuple(map(column, keys)), tuple(cells(keys, check) for check in shown)) if shown else None


def evidence(verdict: Verdict) -> list[str]:
    """The evidence of every check that did not pass, a line each."""
    return [
        f"{check.name}: {line}"
        for check in verdict.checks
        if check.status in ("fail", "unknown")
        for line in check.evidence
    ]


def findings(analysis: Analysis) -> list[str]:
    """Whatever deserves a reader's attention beyond the tables."""
    lines = [f"at {moment(finding.t)}, {finding.code}: {finding.text}" for finding in analysis.findings[:MAX_FINDINGS]]
    if analysis.finding_count > MAX_FINDINGS:
        lines.append(f"and {analysis.finding_count - MAX_FINDINGS} more findings")
    lines += [
        f"at {moment(unwedged.t)}, unwedged {unwedged.node}{' (the master)' if unwedged.master else ''} after "
        f"fault {unwedged.fault}: {duration(unwedged.ended_t - unwedged.started_t)}, "
        f"{'serving again' if unwedged.ok else 'cut short by the end' if unwedged.cut_short else 'in vain'}"
        for unwedged in analysis.unwedged
    ]
    if analysis.requests.damaged:
        lines.append(f"{analysis.requests.damaged} completed requests have a token count unlike the server's usage")
    if analysis.requests.unclean:
        lines.append(f"{analysis.requests.unclean} completed requests did not end properly after their finish reason")
    return lines


def all_tables(analysis: Analysis, verdict: Verdict, *, lost_rows: int = MAX_LOST_ROWS) -> list[Table]:
    """In the order of a report. Checks that were not exercised are apart."""
    by_kind = (faults(analysis), recovery(analysis)) if analysis.kinds else ()
    some = (during(analysis), goodput(analysis), lost(analysis, lost_rows), checks(verdict))
    tables = [requests(analysis), *by_kind, latency(analysis)]
    return [*tables, *(table for table in some if table is not None)]


def struck(analysis: Analysis) -> list[Fault]:
    return [fault for fault in analysis.faults if fault.effective]
