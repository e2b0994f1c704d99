"""What is made of a run: found, missed, or found only by looking into the event log."""

from __future__ import annotations

import pytest

from rig.config.defects import DEFECTS as NAMES
from rig.lab.exo.behaviour import exo_0_3_70, sound, timers_for
from rig.lab.exo.defects import DEFECTS, changes_of
from rig.run.scenarios.read import stock_scenarios
from tests.defects.__main__ import jobs_of, main
from tests.defects.cases import CASES, KEEPER
from tests.defects.draw import drawn
from tests.defects.jobs import GENERAL, Job, Kind, Row, judge
from tests.defects.play import Outcome
from tests.defects.table import BEGIN, END, line, matrix, summary, written


def outcome(with_log: dict[str, str], without_log: dict[str, str] | None = None, ended: str = "finished") -> Outcome:
    def told(statuses: dict[str, str]) -> dict[str, tuple[str, str]]:
        return {name: (status, "said so") for name, status in statuses.items()}

    bare = with_log if without_log is None else without_log
    return Outcome(ended, told(with_log), told(bare), took_s=1.0, virtual_s=60.0, requests=10, faults=2)


def row(kind: Kind, name: str, with_log: dict[str, str], without_log: dict[str, str] | None = None) -> Row:
    return judge(Job(kind, name, 7), outcome(with_log, without_log))


def test_a_defect_is_found_by_a_check_that_is_meant_for_it() -> None:
    found = row(
        "defect", "no-grace", {"new-master-grace": "fail", "recovered": "fail"}, {"new-master-grace": "unknown"}
    )
    assert (found.ok, found.found, found.others) == (True, ("new-master-grace",), ("recovered",))
    assert found.bare == (("new-master-grace", "unknown"),)


@pytest.mark.parametrize("status", ["pass", "unknown", "not-exercised"])
def test_a_defect_that_only_another_check_finds_is_missed(status: str) -> None:
    missed = row("defect", "no-grace", {"new-master-grace": status, "recovered": "fail"})
    assert (missed.ok, missed.found) == (False, ())
    assert f"new-master-grace {status}" in missed.why


@pytest.mark.parametrize("status", ["pass", "not-exercised"])
def test_without_the_event_log_it_may_be_unknown_and_no_better(status: str) -> None:
    blind = row("defect", "no-grace", {"new-master-grace": "fail"}, {"new-master-grace": status})
    assert (blind.ok, blind.found) == (False, ("new-master-grace",))
    assert "without the event log" in blind.why


@pytest.mark.parametrize("status", ["fail", "unknown"])
def test_a_sound_run_raises_nothing_at_all(status: str) -> None:
    assert row("sound", "soak", {"recovered": "pass", "exposure": "not-exercised"}).ok
    raised = row("sound", "soak", {"recovered": status})
    assert (raised.ok, raised.others) == (False, ("recovered",))


def test_a_sound_run_may_be_unknown_without_the_event_log_but_not_fail() -> None:
    assert row("sound", "soak", {"backoff": "pass"}, {"backoff": "unknown"}).ok
    assert not row("sound", "soak", {"backoff": "pass"}, {"backoff": "fail"}).ok


def test_of_a_flawed_run_only_the_keeper_is_judged() -> None:
    assert "backoff" in KEEPER
    assert row("flawed", "soak", {"no-request-lost": "fail", "backoff": "unknown"}).ok
    assert not row("flawed", "soak", {"backoff": "fail"}).ok
    assert not row("flawed", "soak", {"backoff": "pass"}, {"backoff": "fail"}).ok


def test_every_defect_has_a_case_and_changes_something() -> None:
    assert set(CASES) == set(DEFECTS) == set(NAMES)
    assert sum(defect.kind == "keeper" for defect in DEFECTS.values()) >= 14
    assert sum(defect.kind == "symptom" for defect in DEFECTS.values()) >= 15
    for name in DEFECTS:
        changes = changes_of([name], 1)
        fields = {**vars(sound()), **vars(timers_for(sound()))}
        wrong = {**changes.behaviour, **changes.timers}
        assert wrong, name
        assert any(fields[field] != value for field, value in wrong.items()), name
        assert CASES[name].finders, name
        assert bool(CASES[name].kinds) is not bool(CASES[name].scenarios), name


def test_every_scenario_of_a_case_comes_with_the_rig() -> None:
    assert {name for case in CASES.values() for name in case.scenarios} <= set(stock_scenarios())


def test_parameters_follow_from_the_seed_and_differ_with_it() -> None:
    assert changes_of(["short-grace"], 3) == changes_of(["short-grace"], 3)
    assert len({changes_of(["short-grace"], seed).timers["keeper_grace_s"] for seed in range(20)}) == 20
    assert drawn(GENERAL, 3) == drawn(GENERAL, 3)
    assert len({drawn(GENERAL, seed).pace for seed in range(20)}) > 10
    assert [job.seed for job in jobs_of([], sound=2, flawed=0, seed=1, folder=None)] != [
        job.seed for job in jobs_of([], sound=2, flawed=0, seed=2, folder=None)
    ]


def test_exo_0_3_70_is_sound_in_its_keeper_but_for_the_deployments() -> None:
    flawed = vars(exo_0_3_70())
    keeper = {name: value for name, value in vars(sound()).items() if name.startswith(("keeper_", "delete"))}
    assert {name: flawed[name] for name in keeper} == keeper
    assert flawed["deployments_outlive_master"] is False


def test_the_table_names_every_defect_and_takes_its_place_in_the_document() -> None:
    rows = [
        row("defect", "no-grace", {"new-master-grace": "fail"}, {"new-master-grace": "unknown"}),
        row("defect", "no-backoff", {"backoff": "pass"}),
        row("sound", "soak", {"recovered": "pass"}),
    ]
    table = matrix(rows)
    assert [cells.split("|")[1].strip() for cells in table[2:]] == ["`no-backoff`", "`no-grace`"]
    assert "**missed**" in table[2]
    assert summary(rows)[0] == "1 of 2 defects found"
    assert line(rows[1]).startswith("MISSED defect no-backoff, seed 7")
    once = written(f"before\n{BEGIN}\nold\n{END}\nafter\n", rows, 5)
    assert written(once, rows, 5) == once
    assert "old" not in once
    assert once.startswith("before\n")
    assert once.endswith("after\n")


def test_an_unknown_defect_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["no-such-thing"])
    assert ended.value.code == 2
    assert "no such defect: no-such-thing" in capsys.readouterr().err


def test_what_there_is_no_time_for_is_not_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["no-grace", "--minutes", "0"]) == 1
    assert "there was no time for it" in capsys.readouterr().out
