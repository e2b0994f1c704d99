"""What is right of a soak of the real thing: whose each loss is, and what the rig did itself."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from rig.analysis.analyse import Analysis, analyse_run
from rig.analysis.verdict import Verdict, verdict_of
from rig.journal.read import read_run
from rig.report import tables
from rig.report.json import report_json
from rig.report.markdown import markdown

KEPT = Path(__file__).parent / "real_soak"


@pytest.fixture(scope="module")
def soak(tmp_path_factory: pytest.TempPathFactory) -> Analysis:
    folder = tmp_path_factory.mktemp("real_soak")
    (folder / "run.json").write_bytes((KEPT / "run.json").read_bytes())
    (folder / "journal.jsonl").write_bytes(lzma.decompress((KEPT / "journal.jsonl.xz").read_bytes()))
    return analyse_run(read_run(folder))


@pytest.fixture(scope="module")
def verdict(soak: Analysis) -> Verdict:
    return verdict_of(soak)


def blamed(soak: Analysis, *, fault: int | None = None, unwedging: int | None = None) -> set[str]:
    listed = (*soak.requests.listed, *soak.requests.listed_own)
    return {lost.id for lost in listed if (lost.fault, lost.unwedging) == (fault, unwedging)}


def ids(*numbers: int) -> set[str]:
    return {f"r{number}" for number in numbers}


def test_each_loss_is_the_faults_in_whose_reach_it_stopped_or_the_rigs_own(soak: Analysis) -> None:
    lost = [soak.requests.by_fault[number].lost for number in range(7)]
    assert lost == [12, 11, 0, 0, 7, 0, 12]
    assert {fault: counts.lost for fault, counts in soak.requests.by_unwedging.items()} == {0: 7, 4: 5, 6: 4}
    assert blamed(soak) == set()


def test_what_stopped_shortly_before_a_strike_is_that_strikes(soak: Analysis) -> None:
    assert ids(323, 324, 325) <= blamed(soak, fault=1)
    assert ids(524, 525) <= blamed(soak, fault=4)
    assert ids(568, 571) <= blamed(soak, fault=6)


def test_what_the_rig_cut_itself_is_neither_a_faults_nor_calm(soak: Analysis) -> None:
    assert ids(293, 295, 297, 298, 299, 300) <= blamed(soak, unwedging=0)
    assert ids(599, 600, 605, 606) == blamed(soak, unwedging=6)
    assert (soak.requests.calm.lost, soak.requests.calm.error) == (0, 0)
    assert soak.requests.calm.completed > 550


def test_a_freeze_that_touched_no_model_owns_nothing_after_its_heal(soak: Analysis) -> None:
    classes = {r.recovery_class for r in soak.recoveries if r.fault in (3, 5)}
    assert classes == {"unaffected"}
    assert [soak.requests.by_fault[number].error for number in (3, 5)] == [0, 0]


def test_what_became_of_the_models(soak: Analysis) -> None:
    said = [(r.fault, r.model[-1], r.recovery_class) for r in soak.recoveries if r.affected]
    assert said == [
        (0, "a", "survived"), (0, "b", "not recovered"), (1, "a", "replaced"), (1, "b", "replaced"),
        (2, "a", "survived"), (2, "b", "survived"), (4, "a", "not recovered"), (4, "b", "not recovered"),
        (6, "a", "replaced"), (6, "b", "not recovered"),
    ]  # fmt: skip


def test_the_rigs_own_doing_has_a_row_in_every_report(soak: Analysis, verdict: Verdict) -> None:
    row = tables.faults(soak).rows[-1]
    assert (row[0], row[2], row[-2]) == ("unwedging", "3", "16")
    assert "|unwedging|" in markdown(soak, verdict).replace(" ", "")
    found = report_json(soak, verdict)["unwedging"]
    assert [(one["fault"], one["nodes"], one["lost"]) for one in found] == [
        (0, ["exo1", "exo2"], 7), (4, ["exo1", "exo2"], 5), (6, ["exo1", "exo2", "exo3"], 4),
    ]  # fmt: skip
    assert sum(one["lost"] for one in found) + sum(row.lost for row in soak.kinds) == soak.requests.total.lost
    described = tables.lost(soak, limit=100)
    assert described is not None
    assert sum(line[7] == "unwedging after fault 4" for line in described.rows) == 5


def test_the_rigs_own_restarts_explain_themselves(verdict: Verdict) -> None:
    checks = {check.name: check for check in verdict.checks}
    assert checks["nobody-else-died"].status == "pass"
    vanished = checks["deployments-outlive-master"]
    assert vanished.summary.endswith("4 times; 8 more after the rig had restarted several nodes itself")
    assert any("restarted exo1, exo2 itself" in line and "the master exo2 among" in line for line in vanished.evidence)


def test_what_needed_a_log_that_was_not_read_is_unknown(verdict: Verdict) -> None:
    checks = {check.name: check for check in verdict.checks}
    needing = ("one-placement", "one-in-flight", "placement-rate", "new-master-grace")
    assert {checks[name].status for name in needing} == {"unknown"}
    assert any(line.startswith("exo2 at 97.6 s: ") for line in checks["one-placement"].evidence)
    assert checks["backoff"].status == "unknown"
