"""JUnit XML: one case a check, in the shape that build servers read."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from rig.analysis.analyse import Analysis
from rig.analysis.checks.check import Answer, Check, Status
from rig.analysis.verdict import verdict_of
from rig.report.junit import junit
from rig.report.write import read_report, write_report
from tests.analysis.tape import Tape

INTEGERS = ("id", "tests", "failures", "errors", "skipped")


def read(content: bytes) -> ET.Element:
    return ET.fromstring(content)[0]


def checked(*statuses: Status, requires: tuple[str, ...] = ()) -> tuple[Analysis, ET.Element]:
    def fixed(status: Status) -> Check:
        return Check(f"c-{status}", "a promise", lambda _: Answer(status, "found <this> & that", ("line \x00 one",)))

    tape = Tape(plan={**Tape().info.plan, "requires": list(requires)})
    tape.end(3)
    analysis = tape.analyse()
    return analysis, read(junit(analysis, verdict_of(analysis, tuple(map(fixed, statuses)))))


def result(suite: ET.Element, name: str) -> str | None:
    """The tag of what is in a case; None where it passed."""
    case = suite.find(f"testcase[@name='{name}']")
    assert case is not None
    return case[0].tag if len(case) else None


def test_each_status_becomes_what_a_build_server_shows() -> None:
    _, suite = checked("pass", "fail", "unknown", "not-exercised")
    found = [result(suite, f"c-{status}") for status in ("pass", "fail", "unknown", "not-exercised")]
    assert found == [None, "failure", "error", "skipped"]
    assert [suite.get(name) for name in INTEGERS] == ["0", "4", "1", "1", "1"]
    failure = suite.find("testcase/failure")
    assert failure is not None
    assert failure.get("message") == "found <this> & that"
    assert failure.text == "a promise\nline \u2400 one"


def test_what_the_plan_requires_and_was_not_looked_at_is_an_error() -> None:
    _, suite = checked("pass", "not-exercised", requires=("c-not-exercised", "no-such-check"))
    assert result(suite, "c-not-exercised") == "error"
    assert result(suite, "no-such-check") == "error"
    assert (suite.get("tests"), suite.get("errors"), suite.get("skipped")) == ("3", "2", "0")


def test_the_run_is_in_the_properties(lossy_run: Path) -> None:
    write_report(lossy_run, read_report(lossy_run))
    suite = read((lossy_run / "junit.xml").read_bytes())
    properties = {one.get("name"): one.get("value") for one in suite.findall("properties/property")}
    assert {"run": "lossy", "verdict": "fail", "exit_code": "1", "seed": "4", "finished": "false"}.items() <= (
        properties.items()
    )
    said = suite.findtext("system-out") or ""
    assert "EMBEDDED CLUSTER" in said
    assert "DID NOT FINISH" in said


@pytest.mark.parametrize("name", ["sound_run", "lossy_run", "real_run"])
def test_the_common_schema(name: str, request: pytest.FixtureRequest) -> None:
    """The rules of Ant's schema, which is the strictest in use: attributes, their forms, children in their order."""
    found = read_report(request.getfixturevalue(name))
    root = ET.fromstring(junit(found.analysis, found.verdict))
    assert root.tag == "testsuites"
    assert [child.tag for child in root] == ["testsuite"]
    suite = root[0]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d", suite.get("timestamp", ""))
    assert re.fullmatch(r"\d+\.\d+", suite.get("time", ""))
    assert all(suite.get(attribute) for attribute in ("name", "hostname", "package"))
    assert all(re.fullmatch(r"\d+", suite.get(attribute, "")) for attribute in INTEGERS)
    tags = [child.tag for child in suite]
    cases = suite.findall("testcase")
    assert tags == ["properties", *["testcase"] * len(cases), "system-out", "system-err"]
    assert suite.get("tests") == str(len(cases)) == str(len(found.verdict.checks))
    for case in cases:
        assert case.keys() == ["classname", "name", "time"]
        assert len(case) <= 1
        assert all(child.get("type") for child in case if child.tag in ("failure", "error"))
    for tag, attribute in (("failure", "failures"), ("error", "errors"), ("skipped", "skipped")):
        assert len(suite.findall(f"testcase/{tag}")) == int(suite.get(attribute, ""))
