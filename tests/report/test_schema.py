"""The JSON report against its schema, and the documents against both."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from rig.analysis.analyse import analyse
from rig.analysis.verdict import verdict_of
from rig.report.json import report_json
from rig.report.schema import SCHEMA_FILE, WORDS_FILE, main, schema
from rig.report.write import read_report
from tests.analysis.generate import Shape, info_of, records_of
from tests.analysis.tape import Tape

ROOT = Path(__file__).parents[2]


def problems(report: dict[str, Any]) -> list[str]:
    validator = Draft202012Validator(schema())
    return [f"{list(one.absolute_path)}: {one.message}" for one in validator.iter_errors(report)]  # pyright: ignore[reportUnknownMemberType]


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(schema())


@pytest.mark.parametrize("name", ["sound_run", "lossy_run", "real_run"])
def test_reports_follow_it(name: str, request: pytest.FixtureRequest) -> None:
    found = read_report(request.getfixturevalue(name))
    assert problems(report_json(found.analysis, found.verdict)) == []


@pytest.mark.parametrize("seed", range(8))
def test_reports_of_many_shapes_follow_it(seed: int) -> None:
    shape = Shape(seed=seed, duration_s=300, faults=seed, requests=150, views=60, lost_share=0.3, finished=seed % 2 > 0)
    analysis = analyse(info_of(shape), records_of(shape))
    assert problems(report_json(analysis, verdict_of(analysis))) == []


def test_the_report_of_an_empty_journal_follows_it() -> None:
    analysis = analyse(Tape().info, [])
    assert problems(report_json(analysis, verdict_of(analysis))) == []


def test_a_key_that_is_missing_or_not_described_is_found(sound_run: Path) -> None:
    found = read_report(sound_run)
    report = report_json(found.analysis, found.verdict)
    report["news"] = 1
    del report["requests"]["void"]
    report["recoveries"][0]["outage_s"] = "long"
    assert len(problems(report)) == 3


def test_every_key_says_what_it_means() -> None:
    whole = schema()
    objects: dict[str, Any] = {"report": whole, **whole["$defs"]}
    silent = [
        f"{name}.{key}"
        for name, found in objects.items()
        for key, value in found["properties"].items()
        if not value.get("description")
    ]
    assert silent == []


def test_the_documents_are_those_of_this_schema(tmp_path: Path) -> None:
    """After a change: python -m rig.report.schema"""
    (tmp_path / "docs").mkdir()
    main(tmp_path)
    for name in (SCHEMA_FILE, WORDS_FILE):
        assert (ROOT / name).read_text(encoding="utf-8") == (tmp_path / name).read_text(encoding="utf-8")
    assert json.loads((ROOT / SCHEMA_FILE).read_text(encoding="utf-8"))["title"] == "rig report"
