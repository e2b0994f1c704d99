"""The kinds of faults: each complete, told apart, and in the docs as it is."""

from __future__ import annotations

from pathlib import Path

import pytest

from rig.config.stock import scripts_folder
from rig.faults.plan.document import PAGE, with_table
from rig.faults.plan.kind import AnyKind, Pair
from rig.faults.plan.registry import KINDS

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
def test_a_kind_has_its_script_and_its_words(kind: AnyKind) -> None:
    assert isinstance(kind.aim, Pair) or (scripts_folder() / kind.script).is_file()
    assert all((kind.summary, kind.struck_by, kind.healed_by))
    assert kind.recovery_s > 0
    kind.settings()  # every setting has a default


def test_places_and_names_are_used_once_and_every_file_is_a_kind() -> None:
    assert len({kind.place for kind in KINDS.values()}) == len(KINDS)
    folders = (ROOT / "rig" / "faults", ROOT / "rig" / "targets" / "exo" / "faults")
    files = {path.stem.replace("_", "-") for folder in folders for path in folder.glob("[a-z]*.py")}
    assert files == set(KINDS)


def test_the_docs_have_the_table_of_today() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_table(page) == page
    assert page.count("| `") >= len(KINDS)
