"""The tables of a report as plain text cells, for the console and for Markdown alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from rig.analysis.analyse import Analysis
from rig.analysis.kinds import KindRow, UnwedgingRow
from rig.analysis.requests.counts import PERCENTILES, Latencies
from rig.analysis.requests.tally import Lost
from rig.analysis.verdict import Verdict
from rig.report.words import NOTHING, figure, length, milliseconds, percent, seconds, spread

MAX_LOST_ROWS: Final = 20
HEADLINE: Final = "neither result nor error (own node not faulted)"


@dataclass(frozen=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


def summary(analysis: Analysis) -> Table:
    total = analysis.requests.total
    faults = sum(fault.effective for fault in analysis.faults)
    row = (
        analysis.info.run,
        length(analysis.end_t),
        f"{total.started}",
        f"{faults}",
        f"{total.lost_not_own_node}",
    )
    return Table("Summary", ("run", "duration", "requests", "faults", HEADLINE), (row,))


def requests(analysis: Analysis) -> Table:
    total = analysis.requests.total
    columns = ("completed", "errors", "lost", "void", "unfinished", "exposed", "own-node", "own-rejoining", "excluded")
    row = (
        f"{total.completed}",
        f"{total.error}",
        f"{total.lost}",
        f"{total.void}",
        f"{total.unfinished}",
        f"{total.exposed}",
        _with_lost(total.own_node, total.lost_own_node),
        _with_lost(total.own_rejoining, total.lost_own_rejoining),
        percent(total.excluded_share),
    )
    how = ", ".join(f"{count} {name}" for name, count in total.how().items() if count) or "none"
    note = f"Lost: {how}. Without the rig's own deadlines: {total.lost_without_deadlines}. "
    note += f"Calm weather: {analysis.requests.calm.started} requests, {analysis.requests.calm.error} errors, "
    note += f"{analysis.requests.calm.lost} lost."
    held = analysis.held_back
    if held is not None:
        note += (
            f" With {held.bound} in flight, {held.held} had to wait for a place, at most {seconds(held.longest_s)}; "
        )
        note += f"{held.unsent} more were due and never sent, and are in no count."
    return Table("Requests", columns, (row,), note)


def _with_lost(count: int, lost: int) -> str:
    return f"{count} ({lost} lost)" if lost else f"{count}"


def faults(analysis: Analysis) -> Table:
    """One row for each kind, and one for the rig's own restarts. The classes count a fault once for each model."""
    columns = (
        "fault", "planned", "effective", "skipped", "survived", "replaced", "unaffected", "not recovered", "censored",
        "exposed", "errors", "lost",
    )  # fmt: skip
    return Table(
        "Faults",
        columns,
        (*(_fault_row(row) for row in analysis.kinds), *_unwedging_row(analysis.unwedgings)),
        "survived … censored: what became of each model after each effective fault. " + _odd(analysis.kinds),
    )


def _fault_row(row: KindRow) -> tuple[str, ...]:
    numbers = (
        row.planned,
        row.effective,
        row.skipped,
        row.classes["survived"],
        row.classes["replaced"],
        row.classes["unaffected"],
        row.classes["not recovered"],
        row.classes["censored"],
        row.exposed,
        row.error,
    )
    return (row.kind, *(f"{number}" for number in numbers), _lost_cell(row.lost, row.lost_own_node))


def _unwedging_row(rows: Sequence[UnwedgingRow]) -> list[tuple[str, ...]]:
    """What the rig restarted is no fault and not calm: its own doing has a row of its own, where there was any."""
    if not rows:
        return []
    exposed, error = sum(row.exposed for row in rows), sum(row.error for row in rows)
    lost = _lost_cell(sum(row.lost for row in rows), sum(row.lost_own_node for row in rows))
    return [("unwedging", NOTHING, f"{len(rows)}", *[NOTHING] * 6, f"{exposed}", f"{error}", lost)]


def _lost_cell(lost: int, own_node: int) -> str:
    return f"{lost - own_node}" + (f" (+ {own_node} own node)" if own_node else "")


def _odd(rows: Sequence[KindRow]) -> str:
    parts: list[str] = []
    for row in rows:
        for count, word in (
            (row.ineffective, "without effect"),
            (row.invalid, "invalid"),
            (row.unhealed, "not healed"),
            (row.classes["unknown"], "recovered by an instance that could not be told"),
            (row.unwedged, "unwedged by the rig"),
        ):
            if count:
                parts.append(f"{row.kind}: {count} {word}")
    return f"Also: {'; '.join(parts)}." if parts else ""


def recovery(analysis: Analysis) -> Table:
    """One row for each kind, times from the heal, as median / p90 / worst."""
    columns = (
        "fault", "survived: time to serve", "survived: sustained", "replaced: time to serve", "replaced: sustained",
        "from the strike", "outage", "silence, worst", "resolution",
    )  # fmt: skip
    rows = tuple(
        (
            row.kind,
            spread(row.times["survived"].time_to_serve),
            spread(row.times["survived"].sustained),
            spread(row.times["replaced"].time_to_serve),
            spread(row.times["replaced"].sustained),
            spread(row.times["affected"].serve_from_strike),
            spread(row.outage),
            figure(row.silence.worst),
            seconds(row.resolution_worst_s),
        )
        for row in analysis.kinds
    )
    note = "median / p90 / worst, from the heal if not said otherwise. What never ended counts as infinite: > so much."
    return Table("Recovery", columns, rows, note)


def latency(analysis: Analysis) -> Table:
    """Of the good requests; beside it, with failures counted as infinite, where that makes a difference."""
    result = analysis.requests
    groups = {"all": result.all_latencies(), **result.latencies}
    groups |= {f"through {name}": values for name, values in sorted(result.latencies_by_entry.items())}
    groups |= {f"{name}": values for name, values in sorted(result.latencies_by_weather.items()) if _any(values)}
    if analysis.settings.open_loop:
        groups |= {"all, from when sent": result.from_start}
    note = "In brackets: with failures counted as infinite. Sketched, ± 2 %."
    if analysis.settings.open_loop:
        late = [milliseconds(value) for value in result.late_quantiles((0.5, 0.99))]
        note += f" From when each was due; sent {late[0]} later at p50, {late[1]} at p99."
    return Table(
        "Latency",
        ("requests", "completed", *(f"{name} {share}" for name in ("TTFT", "ITL", "E2EL") for share in _SHARES)),
        tuple((name, f"{values.good}", *_latency_cells(values)) for name, values in groups.items()),
        note,
    )


def during(analysis: Analysis) -> Table | None:
    """One row for each kind of fault that struck; None without any."""
    if not analysis.during:
        return None
    asked = analysis.settings.objectives.any
    columns = (
        "fault", "windows", "together", "completed", "failed", *(("met",) if asked else ()),
        *(f"{name} {share}" for name in ("TTFT", "ITL", "E2EL") for share in _SHARES),
    )  # fmt: skip
    rows = tuple(
        (kind, f"{times.windows}", length(times.length_s), *_during_counts(times.latencies, asked=asked),
         *_latency_cells(times.latencies))
        for kind, times in analysis.during.items()
    )  # fmt: skip
    note = (
        "Of requests in flight at some time from a strike to the sustained recovery of their model (unaffected: to the "
    )
    note += "heal). In brackets: with failures counted as infinite. The calm ones are above."
    return Table("Latency during faults", columns, rows, note)


def _during_counts(values: Latencies, *, asked: bool) -> list[str]:
    ended = values.good + values.failed
    met = [percent(values.met / ended) if ended else "-"]
    return [f"{values.good}", f"{values.failed}", *(met if asked else [])]


_SHARES: Final = tuple(f"p{share * 100:g}" for share in PERCENTILES)


def _any(values: Latencies) -> bool:
    return values.good + values.failed > 0


def goodput(analysis: Analysis) -> Table | None:
    """How many requests met the objectives of the workload; None without objectives."""
    wanted, result = analysis.settings.objectives, analysis.requests
    found = result.goodput(wanted)
    if found is None:
        return None
    limits = (("TTFT", wanted.ttft_s), ("ITL", wanted.itl_s), ("E2EL", wanted.e2el_s))
    said = ", ".join(f"{name} ≤ {milliseconds(limit)}" for name, limit in limits if limit is not None)
    groups = {"all": result.all_latencies(), **result.latencies}
    groups |= {f"through {name}": values for name, values in sorted(result.latencies_by_entry.items())}
    groups |= {**result.latencies_by_streamed, **result.latencies_by_weather}
    rows = tuple(
        (name, f"{values.met}", percent(values.met / (values.good + values.failed)))
        for name, values in groups.items()
        if _any(values)
    )
    per_s = "" if found.per_s is None else f" {found.per_s:.2f} requests/s."
    return Table("Goodput", ("requests", "met", "share"), rows, f"Met: {said}.{per_s}{_STREAMS_ALONE}")


_STREAMS_ALONE: Final = " What is not streamed has no TTFT and no ITL to meet."


def _latency_cells(values: Latencies) -> list[str]:
    cells: list[str] = []
    for quantiles in values.quantiles().values():
        for good, all_of_them in zip(quantiles.good, quantiles.with_failures, strict=True):
            same = milliseconds(good) == milliseconds(all_of_them)
            cells.append(milliseconds(good) if same else f"{milliseconds(good)} ({milliseconds(all_of_them)})")
    return cells


def lost(analysis: Analysis, limit: int = MAX_LOST_ROWS) -> Table | None:
    """Every lost request, own node not faulted first; at most `limit`."""
    listed = [*analysis.requests.listed, *analysis.requests.listed_own]
    if not listed:
        return None
    aims = {fault.number: f"{fault.number} ({fault.kind})" for fault in analysis.faults}
    columns = ("request", "how", "model", "entry", "sent at", "stalled at", "ended at", "fault", "own")
    rows = tuple(_lost_row(one, aims) for one in listed[:limit])
    more = analysis.requests.total.lost - len(rows)
    return Table("Lost requests", columns, rows, f"and {more} more" if more > 0 else "")


def _lost_row(one: Lost, aims: dict[int, str]) -> tuple[str, ...]:
    return (
        one.id,
        one.how + ("" if one.streamed else ", not streamed"),
        one.model,
        one.entry,
        seconds(one.started_t),
        seconds(one.stalled_t),
        seconds(one.ended_t),
        _blame(one, aims),
        one.own or "",
    )


def _blame(one: Lost, aims: dict[int, str]) -> str:
    if one.unwedging is not None:
        return f"unwedging after {one.unwedging}"
    return "none near" if one.fault is None else aims.get(one.fault, f"{one.fault}")


def checks(verdict: Verdict) -> Table:
    rows = tuple((check.status, check.name, check.summary) for check in verdict.checks)
    return Table("Checks", ("status", "check", "what was found"), rows)


def evidence(verdict: Verdict) -> list[str]:
    """The evidence of every check that did not pass, a line each."""
    return [
        f"{check.name}: {line}"
        for check in verdict.checks
        if check.status in ("fail", "unknown")
        for line in check.evidence
    ]


def findings(analysis: Analysis) -> list[str]:
    """What is worth a reader's attention beyond the tables; at most some 20 lines."""
    lines = [f"at {finding.t:.1f} s, {finding.code}: {finding.text}" for finding in analysis.findings[:MAX_LOST_ROWS]]
    if analysis.finding_count > MAX_LOST_ROWS:
        lines.append(f"and {analysis.finding_count - MAX_LOST_ROWS} more findings")
    for unwedged in analysis.unwedged:
        worked = "serving again" if unwedged.ok else "in vain"
        took = unwedged.ended_t - unwedged.started_t
        lines.append(
            f"at {unwedged.t:.1f} s, unwedged {unwedged.node}{' (the master)' if unwedged.master else ''}"
            f" after fault {unwedged.fault}: {took:.1f} s, {worked}"
        )
    if analysis.requests.damaged:
        lines.append(f"{analysis.requests.damaged} completed requests have a token count unlike the server's usage")
    if analysis.requests.unclean:
        lines.append(
            f"{analysis.requests.unclean} completed requests did not end as they should after their finish reason"
        )
    return lines


def all_tables(analysis: Analysis, verdict: Verdict) -> list[Table]:
    tables = [summary(analysis), requests(analysis), faults(analysis), recovery(analysis), latency(analysis)]
    some = (during(analysis), goodput(analysis), lost(analysis))
    return [*tables, *(table for table in some if table), checks(verdict)]
