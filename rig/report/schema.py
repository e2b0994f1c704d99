"""The generated pages of `docs/`: schema, keys and glossary. `python -m rig.report.schema` renews them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from rig.report import glossary
from rig.report.figures import REPORT, REQUEST, SCHEMA
from rig.report.form import Form, Json, Shape, reached

SCHEMA_FILE: Final = Path("docs/report.schema.json")
WORDS_FILE: Final = Path("docs/schema.md")
GLOSSARY_FILE: Final = Path("docs/glossary.md")
DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"
_HEAD: Final = f"""# summary.json: the report for programs

`rig report RUN --json` prints it, and every run's folder holds it. This is schema {SCHEMA}: the number
grows when a key changes its meaning or goes; keys may be added at any time. Durations (`_s`) are in
seconds as the run used them, moments (`_t`) in seconds since the start of the run; infinite and
unknown values are null. [figures.md](figures.md) has the rules behind the figures,
[report.schema.json](report.schema.json) the same keys as a JSON Schema.

`python -m rig.report.schema` generates this page and the schema from `rig/report/figures.py`; a test holds
both against real reports."""
_COLUMNS: Final = """The keys of a fault and of a recovery are the columns of `faults` and `recoveries` as
well (`rig.open_run`, `rig report --parquet`), lists of names written with commas. `requests` has these, all of which
may be null:"""


def schema() -> Json:
    """Of the whole report."""
    _, *inner = reached(REPORT)
    return {
        "$schema": DIALECT,
        "title": "rig report",
        "description": f"summary.json, schema {SCHEMA}",
        **REPORT.schema,
        "$defs": {shape.name: shape.schema for shape in inner},
    }


def words() -> str:
    """The schema as a page for people."""
    sections = [_section(shape) for shape in reached(REPORT)]
    return "\n\n".join([_HEAD, *sections, f"## Columns\n\n{_COLUMNS}", _table(REQUEST)]) + "\n"


def _section(shape: Shape[Any]) -> str:
    return f"## {shape.title}\n\n{_table(shape)}"


def _table(shape: Shape[Any]) -> str:
    rows = [f"| `{key.name}` | {_kind(key.form)} | {key.form.unit} | {key.meaning} |" for key in shape]
    return "\n".join(["| key | type | unit | meaning |", "|---|---|---|---|", *rows])


def _kind(form: Form) -> str:
    titles = {shape.name: shape.title for shape in form.shapes}
    return _named(dict(form.schema), titles)


def _named(schema: Json, titles: dict[str, str]) -> str:  # noqa: PLR0911 (one case a form)
    match schema:
        case {"$ref": link}:
            title = titles[str(link).rsplit("/", 1)[-1]]
            return f"[{title}](#{title.lower().replace(' ', '-')})"
        case {"anyOf": some}:
            return " or ".join(_named(inner, titles) for inner in some)
        case {"enum": values}:
            return ", ".join("null" if value is None else f"`{value}`" for value in values)
        case {"const": value}:
            return f"`{value}`"
        case {"items": inner}:
            return f"list of {_named(inner, titles)}"
        case {"additionalProperties": inner}:
            return f"by name: {_named(inner, titles)}"
        case {"type": kind}:
            return str(kind) if isinstance(kind, str) else " or ".join(map(str, kind))
        case _:
            return "anything"


def main(folder: Path) -> int:
    (folder / SCHEMA_FILE).write_text(json.dumps(schema(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / WORDS_FILE).write_text(words(), encoding="utf-8")
    (folder / GLOSSARY_FILE).write_text(glossary.page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path()))
