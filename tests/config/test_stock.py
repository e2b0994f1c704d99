"""The files that come with the rig, and how names are looked up."""

from __future__ import annotations

import tomllib
from itertools import product
from pathlib import Path

import pytest

from rig.config import stock
from rig.config.read import load_inventory, load_workload
from rig.errors import ConfigError
from rig.faults.plan.read import load_all, load_plan

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_stock_file_is_sound_and_named_like_its_file(elsewhere: Path) -> None:
    assert elsewhere.is_dir()
    for name in stock.names("inventories"):
        assert load_inventory(name).name == name
    for name in stock.names("workloads"):
        assert load_workload(name).name == name
    for name in stock.names("faults"):
        assert load_plan(name).name == name


def test_the_stock_files_fit_each_other() -> None:
    load_all("local-openai", None, None)
    inventories = set(stock.names("inventories")) - {"local-openai"}
    files = product(sorted(inventories), stock.names("workloads"), stock.names("faults"))
    for inventory, workload, plan in files:
        if (inventory, plan) != ("two-mac-studios", "all"):  # a bridge takes three nodes
            load_all(inventory, workload, plan)
    with pytest.raises(ConfigError, match="unknown key"):
        load_all("local-openai", "chat", None)
    with pytest.raises(ConfigError, match="bridge-partition takes three nodes"):
        load_all("two-mac-studios", "chat", "all")


def test_what_is_shipped() -> None:
    assert set(stock.names("inventories")) >= {
        "embedded",
        "embedded-exo-0.3.70",
        "embedded-upstream",
        "two-mac-studios",
    }
    assert set(stock.names("workloads")) >= {"chat", "studio-chat"}
    assert set(stock.names("faults")) >= {"keeper", "quick"}
    chat = load_workload("chat")
    assert (chat.clients, [model.nodes_needed for model in chat.models]) == (12, [1, 2])
    keeper = load_plan("keeper")
    assert (keeper.gap, keeper.kinds["freeze"].hold, len(keeper.kinds)) == ((60.0, 150.0), (5.0, 45.0), 5)


def test_the_wheel_carries_every_stock_folder() -> None:
    built = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert built["force-include"] == {
        folder: f"rig/stock/{folder}" for folder in ("faults", "workloads", "inventories")
    }


def test_node_scripts_lie_beside_the_stock_fault_plans() -> None:
    assert (stock.scripts_folder() / "keeper.yaml").is_file()


def test_the_working_folder_comes_before_the_stock(elsewhere: Path) -> None:
    shipped = stock.find("chat", "workloads")
    (elsewhere / "chat.yaml").write_text("name: here\nmodels: [{model: m}]\n")
    assert load_workload("chat").name == "here"
    (elsewhere / "workloads").mkdir()
    (elsewhere / "workloads" / "chat.yaml").write_text("name: mine\nmodels: [{model: m}]\n")
    assert load_workload("chat").name == "mine"
    assert load_workload(str(shipped)).name == "chat"


def test_a_folder_of_the_same_name_does_not_hide_a_stock_file(elsewhere: Path) -> None:
    (elsewhere / "chat").mkdir()
    assert load_workload("chat").name == "chat"


@pytest.mark.parametrize("name", ["chaat", "", "chat\0"])
def test_an_unknown_name_lists_those_there_are(name: str, elsewhere: Path) -> None:
    (elsewhere / "workloads").mkdir()
    (elsewhere / "workloads" / "own.yaml").write_text("")
    with pytest.raises(ConfigError, match=r"there is no workload of this name\n  fix: .*chat, own, .*studio-chat"):
        load_workload(name)


@pytest.mark.parametrize("name", ["./chat.yaml", "nothing/chat", "chat.yaml", "~nobody-of-this-name/x.yaml"])
def test_a_path_that_is_not_there_is_said_to_be_missing(name: str, elsewhere: Path) -> None:
    assert elsewhere.is_dir()
    with pytest.raises(ConfigError, match="no such file"):
        load_workload(name)


def test_a_folder_given_as_a_path_is_said_to_be_one(elsewhere: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder, not a file"):
        load_workload(f"{elsewhere}/")


def test_a_file_that_is_no_regular_file_is_not_waited_for() -> None:
    with pytest.raises(ConfigError, match="not a regular file"):
        load_workload("/dev/null")
