"""Every bad input of the table: what it is told, with file and line where there is one, the exit code, no traceback."""

from __future__ import annotations

import pytest

from tests.cli.bad_inputs import ALL, Bad
from tests.cli.conftest import Answers, can_mount

TABLE = [bad for bad in ALL if "{full}" not in bad.arguments or can_mount()]


@pytest.mark.parametrize("bad", TABLE, ids=lambda bad: bad.name)
def test_what_it_is_told(bad: Bad, answers: Answers) -> None:
    answer = answers.to(bad)
    said = answer.stdout + answer.stderr
    assert "Traceback" not in said
    assert answer.returncode == bad.code, said
    assert bad.unsaid not in said
    for piece in bad.says:
        assert piece in said, said
    assert len(answer.stderr) < 4000, "too much to read"


@pytest.mark.parametrize("bad", [bad for bad in TABLE if bad.arguments[0] == "soak"], ids=lambda bad: bad.name)
def test_a_soak_that_does_not_begin_leaves_no_run(bad: Bad, answers: Answers) -> None:
    answers.to(bad)
    found = [path for path in (answers.folder(bad) / "results").glob("*") if path.name != "taken"]
    assert found == []


def test_the_table_is_long_enough_and_names_are_unique() -> None:
    assert len({bad.name for bad in ALL}) == len(ALL) >= 25
