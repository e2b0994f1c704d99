"""`rig verify` on a running embedded cluster: each exit code, what is printed, what is kept, what is left."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path
from typing import Any

import pytest
import yaml

from rig.analysis.analyse import analyse_run
from rig.analysis.verdict import verdict_of
from rig.journal.read import read_run
from tests.verify.conftest import Rig, scenario

DEPLOY = "  - deploy: { model: 1, as: a }\n"


def listed(cluster: Path, path: str) -> Any:
    node = next(iter(yaml.safe_load(cluster.read_text())["nodes"].values()))
    with urllib.request.urlopen(f"{node['api']}{path}", timeout=10) as answer:
        return json.load(answer)


def test_what_a_sound_target_promises_is_proved(rig: Rig) -> None:
    ran = rig.verify("deploy-places", "instance-deleted", "duplicates-and-unknown", "delete-deployment", "--json")
    assert ran.code == 0, ran.out + ran.err
    told = {one["name"]: one for one in ran.told["scenarios"]}
    assert {one["verdict"] for one in told.values()} == {"pass"}
    assert told["instance-deleted"]["proves"] == {"replaced-at-once": "pass", "one-placement": "pass"}
    assert told["duplicates-and-unknown"]["proves"] == {"duplicates-refused": "pass", "unknown-is-404": "pass"}
    again = verdict_of(analyse_run(read_run(Path(told["delete-deployment"]["folder"]))))
    assert again.word == "pass"  # from the journal alone
    assert "step 1: deploy as a" in ran.err


def test_faults_are_struck_proved_and_healed(rig: Rig) -> None:
    ran = rig.verify("cannot-place", "--json")
    assert ran.code == 0, ran.out + ran.err
    checks = {one["name"]: one["status"] for one in ran.told["scenarios"][0]["checks"]}
    assert checks["faults-effective"] == checks["faults-healed"] == "pass"
    assert checks["retried-on-change"] == checks["reason-once"] == "pass"


def test_an_expectation_that_fails_fails_the_command(rig: Rig, tmp_path: Path, cluster: Path) -> None:
    wrong = scenario(tmp_path, "wrong", DEPLOY + "  - expect: { nothing_of: 1, lasting: 60s }\n")
    ran = rig.verify(wrong, "--json")
    assert ran.code == 1, ran.out + ran.err
    checks = {one["name"]: one for one in ran.told["scenarios"][0]["checks"]}
    assert checks["as-expected"]["status"] == "fail"
    assert "expect: nothing of 1, for 60 s: no longer after" in checks["as-expected"]["evidence"][0]
    assert listed(cluster, "/state/instances") == {}  # nothing is left behind


def test_a_scenario_that_does_not_get_there_is_unknown(rig: Rig, tmp_path: Path) -> None:
    steps = DEPLOY + "  - wait_for: { nodes: 7, within: 1s }\n  - expect: { alone: a }\n"
    ran = rig.verify(scenario(tmp_path, "stuck", steps), "--json")
    assert ran.code == 3, ran.out + ran.err
    checks = {one["name"]: one for one in ran.told["scenarios"][0]["checks"]}
    assert "got no further" in checks["as-expected"]["evidence"][0]


def test_what_was_to_be_proved_must_have_been_called_upon(rig: Rig, tmp_path: Path) -> None:
    lazy = scenario(tmp_path, "lazy", DEPLOY + "  - expect: { placed: a }\n", proves="backoff")
    ran = rig.verify(lazy)
    assert ran.code == 3, ran.out + ran.err
    assert "not-exercised backoff" in ran.out


def test_what_does_not_fit_the_target_is_skipped(rig: Rig) -> None:
    ran = rig.verify("memory-freed", "deploy-places", "--json")
    assert ran.code == 0, ran.out + ran.err
    told = {one["name"]: one for one in ran.told["scenarios"]}
    assert told["memory-freed"] == {"name": "memory-freed", "verdict": "skipped", "reason": "it needs 3 nodes"}


@pytest.mark.parametrize("arguments", [("no-such-scenario",), ("--workload", "no-such-workload", "deploy-places")])
def test_a_file_that_is_not_there(rig: Rig, arguments: tuple[str, ...]) -> None:
    ran = rig.verify(*arguments)
    assert ran.code == 2
    assert "Traceback" not in ran.err
    assert not rig.folder.exists() or not list(rig.folder.iterdir())


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interruption_is_reported(rig: Rig, tmp_path: Path, number: signal.Signals, code: int) -> None:
    long = scenario(tmp_path, "long", DEPLOY + "  - pause: 60s\n  - expect: { alone: a, lasting: 60s }\n")
    ran = rig.interrupted(long, "--json", when=lambda line: "step 2" in line, number=number)
    assert ran.code == code, ran.out + ran.err
    told = ran.told["scenarios"][0]
    assert told["verdict"] == "unknown"
    assert any(one["name"] == "run-finished" and one["status"] == "unknown" for one in told["checks"])


def test_they_are_listed_without_a_target(rig: Rig) -> None:
    ran = rig.verify("--list", "--json")
    assert ran.code == 0
    assert {"backoff", "new-master", "two-at-once"} <= {one["name"] for one in json.loads(ran.out)}
