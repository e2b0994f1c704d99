"""The JSON Schema of `summary.json`, and the same in words: `python -m rig.report.schema` renews both in `docs/`.

Types come from the structures themselves, so that they cannot drift; what a key means is written down here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from rig.analysis.checks.check import CheckResult
from rig.analysis.kinds import KindRow, UnwedgingRow
from rig.analysis.recovery.decision import Recovery
from rig.analysis.recovery.faults import Fault
from rig.analysis.requests.counts import Counts
from rig.analysis.requests.tally import FaultCounts, Lost
from rig.journal.read import ReadNotes
from rig.journal.records import ActivityDied, Finding, Redeployed, Unwedged
from rig.report.json import SCHEMA
from rig.report.meanings import MEANINGS, TITLES

SCHEMA_FILE: Final = Path("docs/report.schema.json")
WORDS_FILE: Final = Path("docs/schema.md")
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
Json = dict[str, Any]

SECONDS: Final[Json] = {"type": ["number", "null"]}
TEXT: Final[Json] = {"type": "string"}
MAYBE_TEXT: Final[Json] = {"type": ["string", "null"]}
WHOLE: Final[Json] = {"type": "integer"}
NUMBER: Final[Json] = {"type": "number"}
FLAG: Final[Json] = {"type": "boolean"}


def schema() -> Json:
    """Of the whole report. No key may be there that is not described."""
    return {
        "$schema": DIALECT,
        "title": "rig report",
        "description": f"summary.json, schema {SCHEMA}",
        **_object("report", _top()),
        "$defs": _definitions(),
    }


def _top() -> Json:
    counts, by_name = _ref("counts"), {"type": "object", "additionalProperties": _ref("counts")}
    latency_by_name: Json = {"type": "object", "additionalProperties": _ref("latency")}
    return {
        "schema": {"const": SCHEMA},
        "stamp": MAYBE_TEXT,
        "verdict": {"enum": ["pass", "fail", "unknown"]},
        "exit_code": {"enum": [0, 1, 3]},
        "run": _ref("run"),
        "requests": counts,
        "lost_how": _ref("lost_how"),
        "requests_calm": counts,
        "requests_baseline": counts,
        "requests_by_model": by_name,
        "requests_by_entry": by_name,
        "requests_by_streamed": by_name,
        "latency": latency_by_name,
        "latency_by_entry": latency_by_name,
        "latency_by_streamed": latency_by_name,
        "latency_by_weather": latency_by_name,
        "latency_by_fault": {"type": "object", "additionalProperties": _ref("latency_during")},
        "latency_from_start": _maybe("latency"),
        "sent_late": _maybe("sent_late"),
        "held_back": _maybe("held_back"),
        "goodput": _maybe("goodput"),
        "lost": _list("lost"),
        "lost_own_node": _list("lost"),
        "damaged": _ref("damaged"),
        "unclean_end": WHOLE,
        "probes": counts,
        "faults": _list("fault"),
        "recoveries": _list("recovery"),
        "kinds": _list("kind"),
        "unwedging": _list("unwedging"),
        "controller": _ref("controller"),
        "looking": {"type": "object", "additionalProperties": _ref("looking")},
        "findings": _list("finding"),
        "redeployed": _list("redeployed"),
        "unwedged": _list("unwedged"),
        "journal": _ref("journal"),
        "checks": _list("check"),
    }


def _definitions() -> Json:
    derived: dict[str, Json] = {}
    types = [Counts, Recovery, Fault, FaultCounts, KindRow, Lost, CheckResult, ReadNotes, ActivityDied, Finding]
    found, components = msgspec.json.schema_components(
        [*types, Redeployed, Unwedged, UnwedgingRow], ref_template="#/$defs/{name}"
    )
    names = [str(one["$ref"]).rsplit("/", 1)[-1] for one in found]
    for name, title in zip(names, _DERIVED, strict=True):
        derived[title] = cast("Json", components.pop(name))
    renamed = {title: _fields(one) for title, one in derived.items()}
    counts = renamed["counts"] | {"lost_not_own_node": WHOLE, "lost_without_deadlines": WHOLE, "excluded_share": NUMBER}
    fault = {"fault": WHOLE, **{k: v for k, v in renamed["fault"].items() if k != "number"}, "effective": FLAG}
    recovery = {"class" if key == "recovery_class" else key: value for key, value in renamed["recovery"].items()}
    objects = renamed | {
        "counts": counts,
        "fault": fault | renamed.pop("fault_counts"),
        "recovery": recovery,
        "run": _RUN,
        "lost_how": dict.fromkeys(("hung", "overdue", "truncated", "empty"), WHOLE),
        "latency": _LATENCY,
        "latency_during": {"windows": WHOLE, "length_s": NUMBER, **_LATENCY},
        "quantiles": {"count": WHOLE, "good": _ref("percentiles"), "failures_infinite": _ref("percentiles")},
        "percentiles": _PERCENTILES,
        "chunk_gap": {**_PERCENTILES, "max_s": SECONDS},
        "sent_late": {**_PERCENTILES, "max_s": SECONDS},
        "held_back": {"bound": WHOLE, "held": WHOLE, "longest_s": NUMBER, "unsent": WHOLE},
        "goodput": {"objectives": _ref("objectives"), "met": WHOLE, "share": SECONDS, "per_s": SECONDS},
        "objectives": dict.fromkeys(("ttft_s", "itl_s", "e2el_s"), SECONDS),
        "damaged": {"count": WHOLE, "ids": {"type": "array", "items": TEXT}},
        "controller": _CONTROLLER,
        "looking": {
            "seconds": NUMBER,
            "asked": WHOLE,
            "unanswered": WHOLE,
            "misread": WHOLE,
            "answer_s": NUMBER,
            "longest_s": NUMBER,
            "per_s": SECONDS,
            "share": SECONDS,
        },
    }
    objects |= {_lowered(name): _fields(cast("Json", one)) for name, one in components.items()}
    return {
        name: _object(name, _relinked(properties)) for name, properties in objects.items() if name != "fault_counts"
    }


_DERIVED: Final = (
    "counts", "recovery", "fault", "fault_counts", "kind", "lost", "check", "journal", "activity_died", "finding",
    "redeployed", "unwedged", "unwedging",
)  # fmt: skip
_PERCENTILES: Final[Json] = dict.fromkeys(("p50_s", "p90_s", "p99_s"), SECONDS)
_RUN: Final[Json] = {
    "name": TEXT, "started": TEXT, "duration_s": NUMBER, "planned_s": NUMBER, "finished": FLAG, "reason": MAYBE_TEXT,
    "detail": TEXT, "seed": WHOLE, "pace": NUMBER, "embedded": FLAG, "behaviour": MAYBE_TEXT, "rig_version": TEXT,
    "rig_revision": MAYBE_TEXT, "inventory": MAYBE_TEXT, "workload": MAYBE_TEXT, "plan": MAYBE_TEXT,
    "target_revisions": {"type": "object", "additionalProperties": MAYBE_TEXT}, "expected_faults": WHOLE,
}  # fmt: skip
_LATENCY: Final[Json] = {
    "completed": WHOLE, "failed": WHOLE, "met": WHOLE, "tokens": WHOLE, "ttft": {"$ref": "#/$defs/quantiles"},
    "itl": {"$ref": "#/$defs/quantiles"}, "e2el": {"$ref": "#/$defs/quantiles"},
    "chunk_gap": {"$ref": "#/$defs/chunk_gap"},
}  # fmt: skip
_CONTROLLER: Final[Json] = {
    "records": WHOLE, "lag_max_s": NUMBER, "stalls": WHOLE, "stalled_s": NUMBER, "cpu_max_percent": NUMBER,
    "rss_max_bytes": WHOLE, "open_files_max": WHOLE,
    "died": {"type": "array", "items": {"$ref": "#/$defs/activity_died"}}, "orphan_ends": WHOLE,
    "repeated_starts": WHOLE,
}  # fmt: skip


def _maybe(name: str) -> Json:
    return {"anyOf": [_ref(name), {"type": "null"}]}


def _ref(name: str) -> Json:
    return {"$ref": f"#/$defs/{name}"}


def _list(name: str) -> Json:
    return {"type": "array", "items": _ref(name)}


def _object(name: str, properties: Mapping[str, Any]) -> Json:
    """All keys are always there, except that records of the journal leave out what has its default."""
    meanings = MEANINGS.get(name, {})
    described = {
        key: value | ({"description": meanings[key]} if key in meanings else {}) for key, value in properties.items()
    }
    optional = name in ("finding", "redeployed", "unwedged", "activity_died")
    required = {} if optional else {"required": list(properties)}
    return {"type": "object", "properties": described, **required, "additionalProperties": False}


def _fields(derived: Json) -> Json:
    """Fields of a derived structure, without defaults (a report has all of them); `inf` is null, so numbers may be."""
    return {str(key): _plain(value) for key, value in derived.get("properties", {}).items()}


def _plain(value: Json) -> Json:
    kept = {key: item for key, item in value.items() if key not in ("default", "title")}
    for key in ("items", "additionalProperties"):
        if isinstance(kept.get(key), dict):
            kept[key] = _plain(kept[key])
    if "anyOf" in kept:
        kept["anyOf"] = [_plain(one) for one in kept["anyOf"]]
    return kept


def _relinked(value: Any) -> Any:
    """Links to derived structures follow their new names."""
    if isinstance(value, dict):
        some = cast("Json", value)
        return {key: _lowered_link(item) if key == "$ref" else _relinked(item) for key, item in some.items()}
    return [_relinked(one) for one in cast("list[Any]", value)] if isinstance(value, list) else value


def _lowered_link(link: str) -> str:
    start, name = link.rsplit("/", 1)
    return f"{start}/{_lowered(name)}"


def _lowered(name: str) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() and i else c.lower() for i, c in enumerate(name))


def words() -> str:
    """The schema as a page for people."""
    whole = schema()
    parts = [
        "# summary.json: the report for programs",
        f"`rig report RUN --json` prints it and every run's folder holds it. This is schema {SCHEMA}: the number grows "
        "when a key changes its meaning or goes; keys may be added at any time. Durations (`_s`) are in seconds as the "
        "run used them, moments (`_t`) in seconds since its start; what is infinite or not known is null. The rules "
        "behind the figures are in [figures.md](figures.md). The same as a JSON Schema: "
        "[report.schema.json](report.schema.json).",
        "Both are made by `python -m rig.report.schema`, and a test holds them against what reports really contain.",
        _section("The report", whole),
    ]
    parts += [_section(TITLES.get(str(name), str(name)), found) for name, found in whole["$defs"].items()]
    return "\n\n".join(parts) + "\n"


def _section(title: str, found: Json) -> str:
    rows = [
        f"| `{key}` | {_kind(value)} | {value.get('description', '')} |" for key, value in found["properties"].items()
    ]
    return "\n".join([f"## {title}", "", "| key | type | meaning |", "|---|---|---|", *rows])


def _kind(value: Json) -> str:  # noqa: PLR0911 (one case a form)
    if "$ref" in value:
        return _linked(str(value["$ref"]).rsplit("/", 1)[-1])
    if "anyOf" in value:
        return " or ".join(_kind(one) for one in value["anyOf"])
    if "enum" in value:
        return ", ".join(f"`{one}`" for one in value["enum"])
    if "const" in value:
        return f"`{value['const']}`"
    if value.get("type") == "array":
        return f"list of {_kind(value.get('items', {}))}"
    if value.get("type") == "object":
        inner = value.get("additionalProperties")
        return f"by name: {_kind(cast('Json', inner))}" if isinstance(inner, dict) and inner else "object"
    kind = value.get("type", "anything")
    return " or ".join(cast("list[str]", kind)) if isinstance(kind, list) else str(kind)


def _linked(name: str) -> str:
    title = TITLES.get(name, name)
    return f"[{title}](#{title.lower().replace(' ', '-')})"


def main(folder: Path) -> int:
    (folder / SCHEMA_FILE).write_text(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / WORDS_FILE).write_text(words(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path()))
