"""One HTML file: styles, script and data inside, nothing fetched from anywhere (its own policy forbids it)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from rig.analysis.analyse import Analysis
from rig.analysis.verdict import Verdict
from rig.report import glossary, tables
from rig.report.glossary import Entry
from rig.report.html import markup
from rig.report.html.data import plot_data
from rig.report.html.markup import Moments, anchor, escape
from rig.report.series import Series
from rig.report.why import counted, headlines, reasons, summary
from rig.report.words import pace_line, stamp, unfinished_line
from rig.written import clock

MAX_LOST_SHOWN: Final = 400
SCRIPTS: Final = ("scale.js", "chart.js", "requests.js", "recovery.js", "lanes.js", "machine.js", "page.js")
POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'"
)


def report_html(analysis: Analysis, verdict: Verdict, series: Series) -> str:
    info = analysis.info
    moments, words = _moments(analysis), glossary.shown()
    meanings = {entry.word: entry.meaning for entry in words.values() if entry.what in ("check", "fault kind")}
    some = tables.all_tables(analysis, verdict, lost_rows=MAX_LOST_SHOWN)
    parts = [(_place(table.title), table.title, markup.table(table, meanings, moments)) for table in some]
    if unexercised := tables.checks(verdict, exercised=False):
        title = f"{unexercised.title} ({len(unexercised.rows)})"
        parts.append(("unexercised", title, markup.folded(title, markup.table(unexercised, meanings, heading=False))))
    for title, lines in (("Evidence", tables.evidence(verdict)), ("Findings", tables.findings(analysis))):
        if lines:
            parts.append((_place(title), title, markup.lines(title, lines, moments)))
    body = (
        f'<header><h1>{escape(info.run)} <span class="mark {verdict.word}">{verdict.word}</span></h1>'
        f"{markup.banner(stamp(analysis), 'stamp')}{markup.banner(unfinished_line(analysis), 'unfinished')}"
        f"{_why(analysis, verdict, meanings, moments)}<p>{escape(_about(analysis))}</p></header>"
        f"{_contents(parts)}<main>"
        f'<section id="plots"><h2>Over time</h2>{TOOLBAR}<div id="legend" aria-label="Legend"></div>{_CHARTS}</section>'
        f'<section id="tables"><h2>Tables</h2>'
        + "".join(f'<section id="{name}">{content}</section>' for name, _, content in parts)
        + f"</section>{_glossary(words)}</main>"
    )
    return whole_page(f"{info.run}: {verdict.word}", body, plot_data(analysis, series), SCRIPTS)


def _why(analysis: Analysis, verdict: Verdict, meanings: Mapping[str, str], moments: Moments) -> str:
    """What failed, then the headline figures: the first screen."""
    failed = "".join(
        f"<li>{markup.term(reason.check, meanings.get(reason.check, ''))}: {moments.linked(reason.found)}</li>"
        for reason in reasons(analysis, verdict)
    )
    lines = "".join(f"<li>{moments.linked(line)}</li>" for line in [*headlines(analysis), counted(verdict)])
    return (
        f'<section id="summary"><h2>Summary</h2>{f"""<ul class="why {verdict.word}">{failed}</ul>""" if failed else ""}'
        f"{markup.table(summary(analysis), {}, heading=False)}<ul>{lines}</ul></section>"
    )


def _place(title: str) -> str:
    return title.lower().replace(" ", "-")


def _contents(parts: Sequence[tuple[str, str, str]]) -> str:
    places = [("plots", "Over time"), *((name, title) for name, title, _ in parts), ("glossary", "Glossary")]
    links = "".join(f'<a href="#{name}">{escape(title)}</a>' for name, title in places)
    return f'<nav aria-label="Contents">{links}</nav>'


def _glossary(words: Mapping[str, Entry]) -> str:
    entries = "".join(
        f'<dt id="{anchor(entry.word)}">{escape(entry.word)} <small>{entry.what}</small></dt>'
        f"<dd>{escape(entry.meaning)}</dd>"
        for entry in words.values()
    )
    content = markup.folded("Every word of this report", f"<dl>{entries}</dl>")
    return f'<section id="glossary"><h2>Glossary</h2>{content}</section>'


def _moments(analysis: Analysis) -> Moments:
    spans = {
        fault.number: (fault.struck_t, fault.struck_t if fault.heal_t is None else fault.heal_t)
        for fault in analysis.faults
        if fault.struck_t is not None
    }
    return Moments(spans, lambda at_t: clock(analysis.info.wall_start_iso, at_t), analysis.end_t)


CHARTS: Final = (
    "latency", "outcomes", "throughput", "requests", "serve", "kinds", "nodes", "instances", "memory", "cpu",
)  # fmt: skip
_CHARTS: Final = "".join(f'<figure class="chart" id="chart-{name}"></figure>' for name in CHARTS)

TOOLBAR: Final = (
    '<div class="toolbar" role="toolbar" aria-label="Time axis of all charts">'
    '<button type="button" id="reset">Whole run</button>'
    '<button type="button" id="closer" aria-label="Zoom in">+</button>'
    '<button type="button" id="wider" aria-label="Zoom out">&minus;</button>'
    '<button type="button" id="earlier" aria-label="Earlier">&larr;</button>'
    '<button type="button" id="later" aria-label="Later">&rarr;</button>'
    '<label>model <select id="model"></select></label>'
    '<label>latency <select id="measure"><option value="duration">end to end</option>'
    '<option value="ttft">first token</option></select></label>'
    '<output id="range" aria-live="polite"></output>'
    '<span class="hint">drag to zoom all charts, double click for the whole run</span></div>'
)


def whole_page(title: str, body: str, data: dict[str, Any], scripts: Sequence[str]) -> str:
    """A page of its own from a body and what its scripts draw from."""
    inline = msgspec.json.encode(data).decode().replace("<", "\\u003c")  # no text can end the script element
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        f"<title>{escape(title)}</title><style>{_asset('report.css')}</style></head><body>{body}"
        '<div id="hover" role="status" hidden></div>'
        f'<script type="application/json" id="data">{inline}</script>'
        f'<script>"use strict";(() => {{\n{"".join(map(_asset, scripts))}}})();</script></body></html>\n'
    )


def _about(analysis: Analysis) -> str:
    info = analysis.info
    revision = f" ({info.rig_revision[:12]})" if info.rig_revision else ""
    inventory, workload, plan = (part.get("name") for part in (info.inventory, info.workload, info.plan))
    parts = [
        f"Seed {info.seed}, rig {info.rig_version}{revision}, {info.wall_start_iso}.",
        f"Inventory {inventory}, workload {workload}, faults {plan}.",
        pace_line(analysis) or "",
    ]
    return " ".join(part for part in parts if part)


@cache
def _asset(name: str) -> str:
    return (files("rig.report.html") / "assets" / name).read_text(encoding="utf-8")
