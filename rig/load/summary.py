"""What `rig load` says at its end: as a JSON value and as tables, from a tally."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import msgspec
from rich.table import Table
from rich.text import Text

from rig.journal.records import HeldBack
from rig.load.arrivals import MOST_LATE_S
from rig.load.tally import PERCENTILES, Spread, Tally
from rig.written import duration

_NAMES = {
    "ttft": "TTFT",
    "itl": "ITL (per request)",
    "gap": "ICL (all gaps)",
    "e2el": "E2EL",
    "ttft_due": "TTFT from when due",
    "e2el_due": "E2EL from when due",
    "connect": "connect",
    "late": "sent late",
}


def summary(tally: Tally, *, url: str, model: str, journal: str | None, stood_still_s: float) -> dict[str, Any]:
    """Durations in seconds. `requests` sums up: started = completed + error + lost + void + unfinished.

    exposed and own_node are 0: without faults and an inventory there is nothing that could make a request one.
    `stood_still_s` is for how long in all the rig itself did, as far as that can matter. `held_back` is null where an
    open loop never had as many in flight as it may; what it counts as `unsent` was due and is in no other count.
    """
    duration_s = _duration_s(tally)
    return {
        "url": url,
        "model": model,
        "requests": {
            "started": tally.started,
            "completed": tally.completed,
            "error": tally.error,
            "lost": tally.lost,
            "void": tally.void,
            "unfinished": tally.unfinished,
            "exposed": 0,
            "own_node": 0,
        },
        "held_back": None if tally.held_back is None else _held_back(tally.held_back),
        "flags": flags(tally, stood_still_s),
        "stood_still_s": round(stood_still_s, 3),
        "lost_how": dict(tally.lost_how),
        "unclean_end": tally.unclean_end,
        "damaged": tally.damaged,
        "duration_s": duration_s,
        "requests_per_s": _rate(tally.ended, duration_s),
        "tokens": tally.tokens,
        "tokens_per_s": _rate(tally.tokens, duration_s),
        "times": {name: msgspec.to_builtins(spread) for name, spread in _spreads(tally).items()},
        "times_failures_infinite": {
            name: {key: value if math.isfinite(value) else None for key, value in found.items()}
            for name, found in _with_failures(tally).items()
        },
        "reasons": dict(tally.reasons.most_common()),
        "void_reasons": dict(tally.void_reasons.most_common()),
        "examples": [msgspec.to_builtins(record) for record in tally.examples],
        "journal": journal,
    }


def flags(tally: Tally, stood_still_s: float) -> list[str]:
    """What makes the figures partly the rig's own, and what completed requests are not, each in words."""
    late, held, found = tally.late.spread(), tally.held_back, list[str]()
    if stood_still_s:
        found.append(
            f"the rig itself stood still for {duration(stood_still_s)} in all: gaps and times across that are its own"
        )
    if tally.void:
        found.append(f"{tally.void} requests are void, for the failure was the rig's own: {_most(tally.void_reasons)}")
    if tally.unclean_end:
        found.append(f"{tally.unclean_end} completed requests did not end cleanly: {_most(tally.unclean_ends)}")
    if tally.damaged:
        found.append(
            f"{tally.damaged} completed requests are damaged: their content is not what the server's usage says"
        )
    if late.p99_s is not None and late.p99_s > MOST_LATE_S:
        found.append(f"the rig sent late: p99 {_ms(late.p99_s)} ms, worst {_ms(late.max_s)} ms after it was due")
    if held is not None and held.unsent:
        found.append(f"{held.unsent} requests were due and never sent, and no figure has them")
    return found


def summary_tables(tally: Tally, *, url: str, model: str) -> list[Table]:
    """Outcomes, times, and why what did not complete did not."""
    tables = [_outcomes(tally, f"{model} at {url}"), _times(tally)]
    if tally.reasons:
        tables.append(_reasons(tally))
    return tables


def _most(reasons: Counter[str]) -> str:
    """The most frequent one."""
    return reasons.most_common(1)[0][0]


def _held_back(held: HeldBack) -> dict[str, Any]:
    return {name: getattr(held, name) for name in ("bound", "held", "longest_s", "unsent")}


def _outcomes(tally: Tally, title: str) -> Table:
    table = Table(title=Text(title), title_justify="left")
    table.add_column("requests")
    table.add_column("", justify="right")
    rows = {
        "started": tally.started,
        "completed": tally.completed,
        "  of these not ended cleanly": tally.unclean_end,
        "  of these damaged": tally.damaged,
        "error": tally.error,
        "lost": tally.lost,
        **{f"  {how}": count for how, count in tally.lost_how.items()},
        "void": tally.void,
        "unfinished": tally.unfinished,
    }
    if tally.held_back is not None:
        rows |= {"due and never sent": tally.held_back.unsent, "waited for a place in flight": tally.held_back.held}
    for name, count in rows.items():
        table.add_row(name, str(count))
    return table


def _times(tally: Tally) -> Table:
    duration_s = _duration_s(tally)
    title, failing = "no request ended", _with_failures(tally)
    if duration_s is not None:
        title = f"{duration_s:.1f} s, {_shown(_rate(tally.ended, duration_s))} requests/s, "
        title += f"{_shown(_rate(tally.tokens, duration_s))} tokens/s; "
        title += "times in ms, of completed requests (in brackets: with failures counted as infinite)"
    table = Table(title=title, title_justify="left")
    for name in ("", "count", "p50", "p90", "p99", "max"):
        table.add_column(name, justify="right" if name else "left")
    for name, spread in _spreads(tally).items():
        beside = failing.get(name, {})
        cells = [_cell(getattr(spread, key), beside.get(key)) for key in ("p50_s", "p90_s", "p99_s")]
        table.add_row(_NAMES[name], str(spread.count), *cells, _ms(spread.max_s))
    return table


def _reasons(tally: Tally) -> Table:
    table = Table(title="Not completed", title_justify="left")
    table.add_column("requests", justify="right")
    table.add_column("why")
    for reason, count in tally.reasons.most_common(10):
        table.add_row(str(count), Text(reason))  # as it is: brackets in it are no markup
    return table


def _spreads(tally: Tally) -> dict[str, Spread]:
    return {name: getattr(tally, name).spread() for name in _NAMES}


def _with_failures(tally: Tally) -> dict[str, dict[str, float]]:
    """Percentiles with every failure counted as infinite, in seconds; without what has no value at all."""
    failed = tally.error + tally.lost
    counted = {"ttft": tally.failed_streamed, "itl": tally.failed_streamed, "e2el": failed}
    counted |= {"ttft_due": tally.failed_streamed, "e2el_due": failed}
    found: dict[str, dict[str, float]] = {}
    for name, infinite in counted.items():
        values = getattr(tally, name).sketch.quantiles(PERCENTILES, infinite=infinite)
        named = zip(("p50_s", "p90_s", "p99_s"), values, strict=True)
        found[name] = {key: value for key, value in named if value is not None}
    return found


def _cell(good_s: float | None, all_s: float | None) -> str:
    same = all_s is None or _ms(good_s) == _ms(all_s)
    return _ms(good_s) if same else f"{_ms(good_s)} ({_ms(all_s)})"


def _duration_s(tally: Tally) -> float | None:
    """From the first request's start to the last one's end."""
    return None if tally.first_t is None or tally.last_t is None else tally.last_t - tally.first_t


def _rate(count: int, duration_s: float | None) -> float | None:
    return count / duration_s if duration_s else None


def _shown(value: float | None) -> str:
    return "-" if value is None else f"{value:.1f}"


def _ms(value_s: float | None) -> str:
    if value_s is None:
        return "-"
    return f"{value_s * 1000:.1f}" if math.isfinite(value_s) else "∞"
