"""`rig inject` and `rig heal` as a user runs them, with a controller that is interrupted and one that is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rig.cli.doctor import doctor
from rig.cli.heal import heal
from rig.cli.inject import plan_by_hand
from rig.config.inventory import Inventory, Node
from rig.errors import UsageError
from tests.injection.rigs import Rig
from tests.nodes.fakeexo import states


def written(node: Node) -> str:
    """An inventory of one node; JSON is YAML."""
    return json.dumps({"name": "test", "nodes": {"n1": node.model_dump()}})


@pytest.fixture
def inventory(rig: Rig, tmp_path: Path) -> str:
    path = tmp_path / "inventory.yaml"
    path.write_text(written(rig.node()))
    return str(path)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "rig", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL)


def start_freeze(inventory: str) -> subprocess.Popen[str]:
    """A freeze of a minute, already holding."""
    command = [
        sys.executable,
        "-u",
        "-m",
        "rig",
        "inject",
        "freeze",
        "-n",
        "n1",
        "--hold",
        "60s",
        "-y",
        "-i",
        inventory,
    ]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    for line in process.stdout:
        if "holding" in line:
            return process
    raise AssertionError("the freeze did not hold")


def test_inject_and_its_evidence(rig: Rig, inventory: str) -> None:
    done = run("inject", "freeze", "--node", "n1", "--hold", "300ms", "--inventory", inventory, "--yes", "--json")
    assert done.returncode == 0, done.stdout + done.stderr
    told = json.loads(done.stdout)
    assert (told["kind"], told["state"], told["nodes"]) == ("freeze", "healed", ["n1"])
    assert str(rig.tree()[0].pid) in done.stderr  # named before it was hit
    assert not (rig.rig_dir / "lock").exists()


def test_nobody_to_ask(inventory: str, rig: Rig) -> None:
    done = run("inject", "freeze", "--node", "n1", "--inventory", inventory)
    assert done.returncode == 2
    assert "--yes" in done.stderr
    assert not list((rig.rig_dir / "log").glob("*")) if (rig.rig_dir / "log").exists() else True


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"kind": "flood", "node": "n1"}, "there is no fault kind 'flood'"),
        ({"node": "n9"}, "there is no node 'n9'"),
        ({}, "freeze needs --node"),
        ({"node": "n1", "hold": "long"}, "--hold: expected a duration"),
        ({"node": "n1", "hold": "2h"}, "--hold: at most"),
        ({"kind": "runner-kill", "node": "n1"}, "runner-kill needs --model"),
        ({"kind": "partition", "node": "n1"}, "a partition needs two nodes"),
    ],
)
def test_what_cannot_be_meant(rig: Rig, options: dict[str, str], says: str) -> None:
    nodes = Inventory(name="test", nodes={"n1": rig.node()})
    with pytest.raises(UsageError) as refused:
        plan_by_hand(
            nodes,
            kind=options.get("kind", "freeze"),
            node=options.get("node"),
            model=None,
            hold=options.get("hold", "1s"),
        )
    assert says in str(refused.value)


def test_what_is_meant(rig: Rig) -> None:
    nodes = Inventory(name="test", nodes={name: rig.node() for name in ("a", "b", "c")})
    cut = plan_by_hand(nodes, kind="partition", node="b", model=None, hold="2.5s")
    assert (cut.aim, cut.sides, cut.hold_s) == ("b | a, c", (("b",), ("a", "c")), 2.5)
    kill = plan_by_hand(nodes, kind="runner-kill", node=None, model="m", hold="9s")
    assert (kill.aim, kill.nodes, kill.hold_s) == ("a runner of m", ("a", "b", "c"), 0.0)
    assert plan_by_hand(nodes, kind="master-crash", node=None, model=None, hold="1s").aim == "master"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_heals_within_two_seconds(rig: Rig, inventory: str, number: signal.Signals, code: int) -> None:
    tree = rig.tree()
    process = start_freeze(inventory)
    assert set(states(tree)) == {"stopped"}
    process.send_signal(number)
    deadline = time.monotonic() + 2.0
    while "stopped" in states(tree):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert process.wait(20) == code


def test_a_killed_controller_leaves_what_heal_clears(rig: Rig, inventory: str) -> None:
    tree = rig.tree()
    process = start_freeze(inventory)
    process.kill()
    process.wait()
    assert set(states(tree)) == {"stopped"}
    refused = run("inject", "freeze", "-n", "n1", "-y", "-i", inventory)
    assert refused.returncode == 3
    assert "took over an expired lock" in refused.stderr
    assert f"rig heal --inventory {inventory}" in refused.stderr
    healed = run("heal", "-i", inventory)
    assert (healed.returncode, "n1: healed freeze" in healed.stdout) == (0, True)
    assert "stopped" not in states(tree)
    again = run("heal", "-i", inventory, "--json")
    assert json.loads(again.stdout) == {"ok": True, "nodes": [{"node": "n1", "did": [], "left": []}]}
    after = run("inject", "freeze", "-n", "n1", "--hold", "100ms", "-y", "-i", inventory)
    assert after.returncode == 0


def test_a_live_run_is_named_first_and_not_ended_unasked(rig: Rig, inventory: str) -> None:
    """A second controller is told to wait; `rig heal` asks; told to go on it heals, and the first one says so."""
    tree = rig.tree()
    process = start_freeze(inventory)
    second = run("inject", "freeze", "-n", "n1", "-y", "-i", inventory)
    assert second.returncode == 3
    assert f":{process.pid} for run by hand" in second.stderr
    assert "wait for that run to end" in second.stderr
    assert "rig heal" not in second.stderr
    found = {one["check"]: one for one in json.loads(run("doctor", "-i", inventory, "--json").stdout)["findings"]}
    assert {found[check]["remedy"] for check in ("lock", "leases", "exo")} == {"wait for that run to end"}
    asked = run("heal", "-i", inventory)
    assert asked.returncode == 2
    assert f":{process.pid} for run by hand: freeze" in asked.stderr
    assert "--yes" in asked.stderr
    assert set(states(tree)) == {"stopped"}
    healed = run("heal", "--yes", "-i", inventory)
    assert (healed.returncode, "n1: healed freeze" in healed.stdout) == (0, True)
    assert "stopped" not in states(tree)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 3
    assert "healed on n1: the hold was cut short" in said


def test_an_embedded_cluster_is_not_bootstrapped(rig: Rig, tmp_path: Path) -> None:
    """Its nodes are this machine, into which files would be written; the doctor does not advise it either."""
    emulated = {"behaviour": "sound", "pace": 1.0, "folder": str(tmp_path)}
    path = tmp_path / "inventory.yaml"
    path.write_text(json.dumps({**json.loads(written(rig.node())), "emulated": emulated}))
    for options in ((), ("--yes",), ("--yes", "--remove")):
        refused = run("bootstrap", "-i", str(path), *options)
        assert (refused.returncode, refused.stdout) == (2, "")
        assert "processes of this machine" in refused.stderr
    found = json.loads(run("doctor", "-i", str(path), "--json").stdout)["findings"]
    assert {one["check"] for one in found if one["level"] != "ok"} >= {"guard"}
    for one in found:
        assert not {"bootstrap", "sudo", "install", "modprobe"} & set(one["remedy"].split()), one


def test_heal_says_what_it_cannot_reach(rig: Rig, inventory: str) -> None:
    rig.server.kill()
    done = run("heal", "-i", inventory)
    assert done.returncode == 3
    assert "LEFT n1:" in done.stdout
    rig.server.start()


def test_no_inventory_and_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    monkeypatch.delenv("RIG_INVENTORY", raising=False)
    for command in (
        lambda: heal(inventory=None, yes=False, as_json=False),
        lambda: doctor(inventory="embedded", rehearse_restart=False, yes=False, as_json=False),
    ):
        with pytest.raises(UsageError, match="rig cluster up"):
            command()


def test_crashes_wait_for_a_rehearsal(rig: Rig, tmp_path: Path) -> None:
    path = tmp_path / "inventory.yaml"
    path.write_text(written(rig.node(restart_rehearsed=False)))
    before = rig.tree()[0]
    refused = run("inject", "node-crash", "-n", "n1", "-y", "-i", str(path))
    assert (refused.returncode, "rig doctor --rehearse-restart" in refused.stderr) == (2, True)
    rehearsed = run("doctor", "--rehearse-restart", "-y", "-i", str(path))
    assert "exo runs again" in rehearsed.stderr
    assert rig.exo.wait(unlike=before.pid).is_running()
    crashed = run("inject", "node-crash", "-n", "n1", "--hold", "100ms", "-y", "-i", str(path), "--json")
    assert json.loads(crashed.stdout)["state"] == "healed"
