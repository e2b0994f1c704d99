"""Every command once as a newcomer would use it: on a running cluster, and on the run that a soak on it left."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from rig.config.inventory import Inventory
from rig.config.read import load_inventory
from rig.journal.read import read_run
from rig.journal.records import RequestEnded
from tests.cli.conftest import alone
from tests.nodes.servers import ssh_of
from tests.soak.lane import Lane, on_lane, rig, until
from tests.soak.terminal import Terminal


@dataclass(frozen=True)
class Run:
    """A soak that came to its own end, with `--json`."""

    done: subprocess.CompletedProcess[str]
    folder: Path


@pytest.fixture(scope="module")
def run(lane: Lane, tmp_path_factory: pytest.TempPathFactory) -> Run:
    work = tmp_path_factory.mktemp("run")
    options = on_lane(lane, work, "partition", hold_s=1.0)
    done = rig("soak", "--yes", "--minutes", "0.15", "--name", "run", "--json", *options, cwd=work)
    return Run(done, work / "results" / "run")


@pytest.fixture(scope="module")
def killed(run: Run) -> Path:
    """The same as it would be had the controller been killed half way: the journal stops within a line."""
    folder = run.folder.parent / "killed"
    folder.mkdir()
    shutil.copy(run.folder / "run.json", folder)
    journal = (run.folder / "journal.jsonl").read_bytes()
    (folder / "journal.jsonl").write_bytes(journal[: len(journal) * 2 // 3])
    return folder


def test_a_soak_with_json_prints_one_document_and_nothing_else(run: Run) -> None:
    told: dict[str, Any] = json.loads(run.done.stdout)
    assert told["exit_code"] == run.done.returncode
    assert told["run"]["finished"] is True
    counts = told["requests"]
    assert counts["started"] == sum(counts[key] for key in ("completed", "error", "lost", "void", "unfinished")) > 0
    assert {"exposed", "own_node"} <= counts.keys()
    assert set(told["lost_how"]) == {"hung", "overdue", "truncated", "empty"}
    assert {fault["kind"] for fault in told["faults"]} == {"partition"}
    assert "fault 0 partition" in run.done.stderr
    assert "EMBEDDED CLUSTER" in told["stamp"]


def test_report_says_the_same_again_in_every_form(run: Run, tmp_path: Path) -> None:
    as_json = rig("report", str(run.folder), "--json", cwd=tmp_path)
    assert json.loads(as_json.stdout) == json.loads(run.done.stdout)
    as_text = rig("report", str(run.folder), cwd=tmp_path)
    as_markdown = rig("report", str(run.folder), "--markdown", cwd=tmp_path)
    assert {done.returncode for done in (as_json, as_text, as_markdown)} == {run.done.returncode}
    assert as_markdown.stdout == (run.folder / "summary.md").read_text()
    assert "\x1b" not in as_text.stdout + as_markdown.stdout
    widest = max(map(len, as_text.stdout.splitlines()))
    assert 80 < widest <= 200


def test_report_of_a_killed_run(killed: Path, tmp_path: Path) -> None:
    as_json = rig("report", str(killed), "--json", cwd=tmp_path)
    told: dict[str, Any] = json.loads(as_json.stdout)
    assert (told["run"]["finished"], told["exit_code"], as_json.returncode) == (False, 3, 3)
    as_markdown = rig("report", str(killed), "--markdown", cwd=tmp_path)
    assert "THIS RUN DID NOT FINISH" in as_markdown.stdout
    assert as_markdown.returncode == 3


def test_show(run: Run, tmp_path: Path) -> None:
    shown = rig("show", str(run.folder), cwd=tmp_path)
    assert shown.returncode == 0
    assert all(f"phase     {phase}" in shown.stdout for phase in ("setup", "baseline", "faults", "drain", "end"))
    fault = rig("show", str(run.folder), "--fault", "0", cwd=tmp_path)
    assert fault.returncode == 0
    assert fault.stdout.count("partition healed") == 1
    ended = next(one for one in read_run(run.folder).records() if isinstance(one, RequestEnded) and one.tokens > 0)
    request = rig("show", str(run.folder), "--request", ended.id, cwd=tmp_path)
    assert request.returncode == 0
    assert ended.id in request.stdout
    assert ended.outcome in request.stdout


def test_plan_is_the_same_twice_and_expects_what_three_hours_hold(tmp_path: Path) -> None:
    first, again, other = (
        rig("plan", "--hours", "3", "--seed", seed, "--json", cwd=tmp_path) for seed in ("7", "7", "8")
    )
    assert first.returncode == 0
    assert first.stdout == again.stdout != other.stdout
    told: dict[str, Any] = json.loads(first.stdout)
    assert 60 <= told["expected"] == len(told["faults"]) <= 80
    assert all(set(fault) >= {"kind", "aim", "hold_s", "gap_s"} for fault in told["faults"])


@pytest.mark.parametrize(
    "arguments",
    [
        ("freeze", "-n", "node-2"),
        ("partition", "-n", "node-1"),
        ("runner-kill", "--model", "lab/tiny-a"),
        ("node-crash", "-n", "node-2"),
        ("master-crash",),
    ],
    ids=lambda arguments: arguments[0],
)
def test_inject(arguments: tuple[str, ...], run: Run, lane: Lane, tmp_path: Path) -> None:
    """After the run, which has deployed the model."""
    assert run.folder.exists()
    done = rig("inject", *arguments, "--hold", "1s", "--yes", "--json", "-i", lane.inventory, cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    assert (told["kind"], told["state"]) == (arguments[0], "healed")
    assert told["evidence"]
    assert lane.leases() == lane.locks() == []
    healed = rig("heal", "-i", lane.inventory, cwd=tmp_path)
    assert (healed.returncode, healed.stdout) == (0, "node-1: nothing to heal\nnode-2: nothing to heal\n")


def test_doctor(lane: Lane, tmp_path: Path) -> None:
    done = rig("doctor", "-i", lane.inventory, cwd=tmp_path)
    assert done.returncode == 0, done.stdout
    assert done.stdout.endswith("ready\n")
    assert "\x1b" not in done.stdout
    as_json = rig("doctor", "-i", lane.inventory, "--json", cwd=tmp_path)
    found: list[dict[str, str]] = json.loads(as_json.stdout)["findings"]
    assert {one["node"] for one in found} == {"node-1", "node-2"}
    assert {one["check"] for one in found if one["level"] != "ok"} == {"sudo", "guard"}  # root, and no guard: warnings


def test_day_one_from_hosts_to_a_rehearsed_restart(lane: Lane, tmp_path: Path) -> None:
    """`rig init`, read what it says, say how exo is started, rehearse."""
    known = load_inventory(lane.inventory)
    hosts = [f"rig@127.0.0.1:{ssh_of(node).port}" for node in known.nodes.values()]
    key = ssh_of(next(iter(known.nodes.values()))).key
    assert key is not None
    done = rig("init", *hosts, "--key", key, "-o", "mine.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "node-1: not found out: how exo is started" in done.stdout
    found = load_inventory(str(tmp_path / "mine.yaml"))
    for name, node in known.nodes.items():
        seen = found.nodes[name]
        assert (seen.api, seen.process.home, seen.addresses) == (node.api, node.process.home, node.addresses)
    _complete(tmp_path / "mine.yaml", known, tmp_path)
    before = rig("doctor", "-i", "mine.yaml", cwd=tmp_path)
    assert before.returncode == 3
    assert "2 to be fixed before a run" in before.stdout
    assert "rig doctor --rehearse-restart" in before.stdout
    rehearsed = rig("doctor", "-i", "mine.yaml", "--rehearse-restart", "--yes", cwd=tmp_path)
    assert rehearsed.returncode == 0, rehearsed.stdout + rehearsed.stderr
    assert rehearsed.stdout.endswith("ready\n")


def _complete(path: Path, known: Inventory, folder: Path) -> None:
    """What the user adds. Both nodes are one machine here, so that each needs a folder of its own for leases."""
    written: dict[str, Any] = yaml.safe_load(path.read_text())
    for name, node in written["nodes"].items():
        node["exo"]["start"] = known.nodes[name].process.start
        node["rig_dir"] = str(folder / f"rig-{name}")
    text: str = yaml.safe_dump(written)  # pyright: ignore[reportUnknownMemberType]
    path.write_text(text)


def test_cluster_status_and_a_second_cluster_in_its_place(lane: Lane, tmp_path: Path) -> None:
    status = rig("cluster", "status", "--folder", str(lane.folder), "--json", cwd=tmp_path)
    told: dict[str, Any] = json.loads(status.stdout)
    assert (status.returncode, told["running"], len(told["nodes"])) == (0, True, 2)
    again = rig("cluster", "up", "--folder", str(lane.folder), cwd=tmp_path)
    assert again.returncode == 3
    assert f"an embedded cluster runs in {lane.folder}" in again.stderr
    none = rig("cluster", "status", "--folder", "none", cwd=tmp_path)
    assert (none.returncode, "no embedded cluster in" in none.stdout) == (3, True)
    down = rig("cluster", "down", "--folder", "none", cwd=tmp_path)
    assert (down.returncode, "no embedded cluster" in down.stdout) == (0, True)


COMMANDS = ("soak", "plan", "inject", "heal", "doctor", "init", "report", "show", "load", "cluster")


@pytest.mark.parametrize("command", [*COMMANDS, "cluster up", "cluster down", "cluster status"])
def test_help_of_each_command(command: str, tmp_path: Path) -> None:
    done = rig(*command.split(), "--help", cwd=tmp_path)
    assert done.returncode == 0
    assert f"rig {command}" in done.stdout
    assert "--help" in done.stdout


def test_help_names_every_command_and_the_exit_codes(tmp_path: Path) -> None:
    done = rig("--help", cwd=tmp_path)
    assert done.returncode == 0
    assert all(f"\n  {command}" in done.stdout for command in COMMANDS)
    assert "Exit codes: 0 pass, 1 a check failed, 2 usage or configuration, 3 unknown" in " ".join(done.stdout.split())
    assert "rig soak --minutes" in done.stdout
    assert rig(cwd=tmp_path).stderr.split() == done.stdout.split()


def test_help_loads_nothing_that_it_does_not_need(tmp_path: Path) -> None:
    heavy = {"asyncssh", "aiohttp", "httpx", "pandas", "pydantic", "yaml", "uvloop", "rich.console"}
    code = "import sys, rig.cli.app; print(*sys.modules)"
    loaded = set(alone("-c", code, cwd=tmp_path).stdout.split())
    assert loaded & heavy == set()


def test_colours_are_for_terminals_that_want_them(run: Run, tmp_path: Path) -> None:
    coloured = _on_terminal("report", str(run.folder), cwd=tmp_path)
    assert "\x1b[32mpass" in coloured
    plain = _on_terminal("report", str(run.folder), cwd=tmp_path, NO_COLOR="1")
    assert "pass" in plain
    assert "\x1b[3" not in plain.replace("\x1b[3m", "")  # italics are no colour


def _on_terminal(*arguments: str, cwd: Path, **environment: str) -> str:
    terminal = Terminal(*arguments, cwd=cwd, environment={"COLUMNS": "180", **environment})
    try:
        until(lambda: terminal.process.poll() is not None and "exit code" in terminal.reader.text(), "it ended")
        return terminal.reader.text()
    finally:
        terminal.close()


@pytest.mark.parametrize(("typed", "code"), [("\x03", 130), ("n\n", 2), ("\n", 2)], ids=["ctrl-c", "no", "nothing"])
def test_the_question_before_the_first_fault(typed: str, code: int, lane: Lane, tmp_path: Path) -> None:
    """Ctrl-C is typed: the terminal makes the signal of it."""
    terminal = Terminal("inject", "freeze", "-n", "node-2", "-i", _as_real_nodes(lane, tmp_path), cwd=tmp_path)
    try:
        until(lambda: "Go ahead? [y/N]" in terminal.reader.text(), "the question")
        terminal.reader.type(typed)
        assert terminal.process.wait(60) == code
        assert "leased" not in terminal.reader.text()
        assert "Traceback" not in terminal.reader.text()
        main = Path(load_inventory(lane.inventory).nodes["node-2"].process.pid_path).read_text()
        assert psutil.Process(int(main)).status() != psutil.STATUS_STOPPED
    finally:
        terminal.close()


def test_nobody_to_ask(lane: Lane, tmp_path: Path) -> None:
    done = rig("inject", "freeze", "-n", "node-2", "-i", _as_real_nodes(lane, tmp_path), cwd=tmp_path)
    assert done.returncode == 2
    assert "nobody can be asked" in done.stderr
    assert "--yes" in done.stderr
    main = Path(load_inventory(lane.inventory).nodes["node-2"].process.pid_path).read_text().strip()
    assert f"    {main} " in done.stderr, "the pids that it may kill are named first"


def _as_real_nodes(lane: Lane, folder: Path) -> str:
    """The inventory without the word that these nodes are emulated, with locks of its own."""
    inventory: dict[str, Any] = yaml.safe_load(Path(lane.inventory).read_text())
    del inventory["emulated"]
    for name, node in inventory["nodes"].items():
        node["rig_dir"] = str(folder / name)
    path = folder / "real.yaml"
    text: str = yaml.safe_dump(inventory)  # pyright: ignore[reportUnknownMemberType]
    path.write_text(text)
    return str(path)
