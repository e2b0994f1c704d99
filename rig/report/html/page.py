"""One HTML file: styles, script and data inside, nothing fetched from anywhere (its own policy forbids it)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any, Final

import msgspec

from rig.analysis.analyse import Analysis
from rig.analysis.verdict import Verdict
from rig.report import tables
from rig.report.html import markup
from rig.report.html.data import plot_data
from rig.report.html.markup import escape
from rig.report.series import Series
from rig.report.words import pace_line, stamp, unfinished_line

MAX_LOST_SHOWN: Final = 400
SCRIPTS: Final = ("scale.js", "chart.js", "requests.js", "recovery.js", "lanes.js", "machine.js", "page.js")
POLICY: Final = (
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'"
)


def report_html(analysis: Analysis, verdict: Verdict, series: Series) -> str:
    info = analysis.info
    charts = "".join(f'<figure class="chart" id="chart-{name}"></figure>' for name in CHARTS)
    all_tables = tables.all_tables(analysis, verdict)
    body = (
        f'<header><h1>{escape(info.run)} <span class="mark {verdict.word}">{verdict.word}</span></h1>'
        f"{markup.banner(stamp(analysis), 'stamp')}"
        f"{markup.banner(unfinished_line(analysis), 'unfinished')}"
        f"<p>{escape(_about(analysis))}</p></header>"
        f'<main><section id="summary"><h2>Summary</h2>{"".join(map(markup.table, all_tables[:2]))}</section>'
        f'<section id="plots"><h2>Over time</h2>{TOOLBAR}<div id="legend" aria-label="Legend"></div>{charts}</section>'
        f'<section id="tables"><h2>Tables</h2>{_tables(all_tables[2:], analysis)}</section>'
        f'<section id="details"><h2>Evidence and findings</h2>'
        f"{markup.lines('Evidence', tables.evidence(verdict))}{markup.lines('Findings', tables.findings(analysis))}"
        f"</section></main>"
    )
    return whole_page(f"{info.run}: {verdict.word}", body, plot_data(analysis, series), SCRIPTS)


CHARTS: Final = (
    "latency", "outcomes", "throughput", "requests", "serve", "kinds", "nodes", "instances", "memory", "cpu",
)  # fmt: skip

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


def _tables(some: list[tables.Table], analysis: Analysis) -> str:
    """With all lost requests that are listed, not only the first that fit a terminal."""
    every = tables.lost(analysis, limit=MAX_LOST_SHOWN)
    shown = [every if every is not None and table.title == every.title else table for table in some]
    return "".join(map(markup.table, shown))


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
