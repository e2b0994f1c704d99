"""What every word of a report means: figures, checks, kinds of faults, and the words that these are explained with."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from typing import Any, Final, Literal, TypeAlias

from rig.analysis.verdict import known_checks
from rig.faults.plan.registry import KINDS
from rig.report.figures import (
    CHECK,
    CLASSES,
    COUNTS,
    DURING,
    GOODPUT,
    KIND,
    LATENCY,
    LOST,
    RECOVERY,
    REPORT,
    REQUEST,
    RUN,
    TIMES,
)
from rig.report.form import Key, Shape, reached

What: TypeAlias = Literal["word", "class of recovery", "fault kind", "check", "figure"]

WORDS: Final[dict[str, str]] = {
    "aborted": "The rig ended the run early: a fault could not be undone, or too many models in a row did not recover.",
    "around faults": "Requests that are not in calm weather.",
    "baseline": "Load without faults at the start of a run; nothing may be lost in it.",
    "calm weather": "Requests touched by neither a fault nor an unwedging: not exposed, own node neither faulted nor "
    "rejoining, no failure attributed to either.",
    "check": "A promise judged from the journal alone: pass, fail, unknown or not-exercised, with evidence.",
    "closed loop": "Each client sends its next request when its last one has ended.",
    "deployment": "The target's standing order to keep an instance of a model.",
    "E2EL": "End-to-end latency: from the start of a request (open loop: when it was due) to the end of its answer.",
    "embedded cluster": "An emulated cluster of real processes on this machine, for trials without hardware. Nothing "
    "measured on it is a measurement of the target.",
    "entry node": "The node whose API a request was sent to.",
    "exit code": "0 pass, 1 a check failed, 2 usage or configuration, 3 unknown or infrastructure, 130 and 143 "
    "interrupted.",
    "fail": "A promise was broken at least once; where only an interval is known, at every time in it.",
    "fault": "One injection: struck, proved, held, healed, proved.",
    "heal": "The rig's own effect is undone. What the target does then is recovery.",
    "hold": "Time for which a fault stays in force.",
    "instance": "A model loaded on one or several nodes and ready to serve.",
    "ITL": "Inter-token latency of a stream: (last - first token) / (tokens - 1).",
    "lease": "The record on a node of a fault in force: what to undo, for whom, and until when.",
    "lost": "A request with neither a result nor an error: hung, overdue, truncated or empty. The headline counts "
    "those whose own node was not faulted.",
    "not-exercised": "Nothing in the run called upon the promise. Neutral, unless the plan requires the check.",
    "open loop": "Requests are sent on a schedule that does not wait for answers; latencies count from when each was "
    "due.",
    "own node": "The entry node of a request, when a fault on its process or on the clients' path to it was in force "
    "between the request's start and 1 s after its last progress.",
    "own rejoining": "The entry node of a request was restarted and had not caught up with the others yet.",
    "pace": "Factor by which every duration of a run is divided, to try things out faster.",
    "pass": "The promise was called upon, and held each time that can be told.",
    "probe": "A request of one token by which the rig asks whether a model serves; counted apart from the load.",
    "recovery": "The target's way back to serving a model after a fault.",
    "strike": "A fault takes effect.",
    "target": "The system under test.",
    "TTFT": "Time to first token: from the start of a streamed request (open loop: when it was due) to its first "
    "content.",
    "unknown": "The promise was called upon, and what was recorded does not tell whether it held.",
    "unwedging": "The rig restarted nodes because a model did not recover by itself; its effects are kept apart.",
    "verdict": "The worst result of the checks: fail, then unknown, then pass.",
}


@dataclass(frozen=True)
class Entry:
    """`place` says where a figure stands in `summary.json`; the page of the docs that has more, for the others."""

    word: str
    what: What
    meaning: str
    place: str = ""


@cache
def entries() -> tuple[Entry, ...]:
    """Words first, then what the registries and the table of figures have."""
    found = [Entry(word, "word", meaning) for word, meaning in WORDS.items()]
    found += [Entry(key.heading, "class of recovery", key.meaning, "docs/figures.md") for key in CLASSES]
    found += [Entry(kind.name, "fault kind", kind.summary, "docs/faults.md") for kind in KINDS.values()]
    found += [Entry(check.name, "check", check.promise, "docs/checks.md") for check in known_checks()]
    found += [
        Entry(heading, "figure", key.meaning + (f" [{key.form.unit}]" if key.form.unit else ""), _place(shape, key))
        for shape in (*_SHOWN, *reached(REPORT), REQUEST)
        if shape is not CLASSES
        for key in shape
        for heading in (key.heading, key.name)
    ]
    return tuple(dict.fromkeys(found))


_SHOWN: Final[tuple[Shape[Any], ...]] = (RUN, COUNTS, RECOVERY, KIND, TIMES, LATENCY, DURING, GOODPUT, LOST, CHECK)
"""Objects whose keys are headings of tables."""


def _place(shape: Shape[Any], key: Key[Any]) -> str:
    return f"{shape.title}: `{key.name}`"


def shown() -> dict[str, Entry]:
    """The glossary of a report, in its order: without the keys of the JSON that no table shows."""
    found = {entry.word.lower(): entry for entry in entries() if entry.what != "figure"}
    headings = {key.heading for shape in _SHOWN for key in shape}
    for entry in entries():
        if entry.word in headings:
            found.setdefault(entry.word.lower(), entry)
    return dict(sorted(found.items()))


def explain(word: str) -> list[Entry]:
    """All entries of this word, whatever its case and its hyphens."""
    return [entry for entry in entries() if _key(entry.word) == _key(word)]


def near(word: str) -> list[str]:
    """Words that may have been meant, the nearest first."""
    known = {_key(entry.word): entry.word for entry in reversed(entries())}
    close = get_close_matches(_key(word), known, n=3, cutoff=0.6)
    within = [key for key in known if _key(word) in key and len(word) > 2]
    return [known[key] for key in dict.fromkeys([*close, *within[:3]])]


def _key(word: str) -> str:
    return " ".join(word.lower().replace("_", " ").replace("-", " ").split())


def page() -> str:
    """`docs/glossary.md`."""
    head = (
        "# Glossary\n\n`rig explain WORD` prints an entry, reports have these as tooltips. `python -m "
        "rig.report.schema` generates\nthis page. Keys of `summary.json` are in [schema.md](schema.md).\n\n"
        "| word | | meaning |\n|---|---|---|\n"
    )
    return head + "".join(f"| {entry.word} | {entry.what} | {entry.meaning} |\n" for entry in shown().values())
