from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from rig.config.inventory import Node
from rig.errors import ConfigError, NodeNotReady
from rig.faults.plan.kind import Pair
from rig.faults.plan.registry import KINDS
from rig.nodes.open import open_nodes
from rig.nodes.scripts import Bundle, ScriptEvent, cksum, parse_event, process_values, script_command, script_stdin
from rig.nodes.upload import upload
from rig.targets.exo.fields import ExoProcess
from tests.nodes.servers import SshServer

SHOW = b"""#!/bin/sh
parse_args() { :; }
parse_args 'match hold gone start' "$@"
for a in "$@"; do printf "<%s>" "$a"; done
"""


def test_events() -> None:
    line = "@rig\tstruck\t12.340\tpids=1:2 3:4\tproof_t=12.4\tequation=a=b\tempty=\n"
    fields = {"pids": "1:2 3:4", "proof_t": "12.4", "equation": "a=b", "empty": ""}
    assert parse_event(line) == ScriptEvent("struck", 12.34, fields)


@pytest.mark.parametrize("line", ["", "@rig", "@rig\tstruck", "@rig\tstruck\tsoon", "rig\tstruck\t1", "@rig\t\t1"])
def test_what_is_no_event(line: str) -> None:
    assert parse_event(line) is None


@pytest.mark.parametrize("data", [b"", b"a", b"rig\n" * 300, bytes(range(256)) * 9])
def test_cksum_is_that_of_the_command(data: bytes) -> None:
    said = subprocess.run(["cksum"], input=data, capture_output=True, check=True).stdout.split()
    assert cksum(data) == int(said[0])


def bundle(tmp_path: Path) -> Bundle:
    folder = tmp_path / "scripts"
    folder.mkdir(parents=True)
    (folder / "show.sh").write_bytes(SHOW)
    (folder / "lib.sh").write_bytes(b"x=1\n")
    (folder / "plan.yaml").write_bytes(b"not a script\n")
    return Bundle.of(folder)


async def test_upload_once_and_repair(server: SshServer, tmp_path: Path) -> None:
    scripts = bundle(tmp_path)
    assert sorted(scripts.files) == ["lib.sh", "show.sh"]
    async with open_nodes(server.inventory()) as nodes:
        folder = Path(await upload(nodes["n1"], scripts))
        assert (folder / "show.sh").read_bytes() == SHOW
        before = (folder / "show.sh").stat().st_ino
        await upload(nodes["n1"], scripts)
        assert (folder / "show.sh").stat().st_ino == before
        (folder / "show.sh").chmod(0o600)
        (folder / "show.sh").write_bytes(SHOW[:-3])
        await upload(nodes["n1"], scripts)
        assert (folder / "show.sh").read_bytes() == SHOW
        assert (folder.parent.stat().st_mode & 0o777) == 0o700


async def test_values_arrive_as_they_are(server: SshServer, tmp_path: Path) -> None:
    scripts = bundle(tmp_path)
    nasty = "a 'b' \"c\" $(touch pwned) `touch pwned` \\ ; & | * ~ #"
    async with open_nodes(server.inventory()) as nodes:
        await upload(nodes["n1"], scripts)
        values = {"match": nasty, "gone": "", "hold": "1.5"}
        command = script_command(nodes["n1"].node, "show.sh", values, scripts)
        assert script_stdin(values) is None
        assert (await nodes["n1"].run(command)).stdout == f"<match={nasty}><hold=1.5>"
        values |= {"start": nasty}
        command = script_command(nodes["n1"].node, "show.sh", values, scripts)
        assert script_stdin(values) == f"start={nasty}\n.\n".encode()
        assert (await nodes["n1"].run(command)).stdout == f"<-><match={nasty}><hold=1.5>"


async def test_path_of_the_inventory(server: SshServer, tmp_path: Path) -> None:
    scripts = bundle(tmp_path)
    inventory = server.inventory(n1=server.node(path="/usr/bin:/bin:/o'dd"))
    async with open_nodes(inventory) as nodes:
        await upload(nodes["n1"], scripts)
        command = script_command(nodes["n1"].node, "show.sh", {}, scripts).replace("exec sh", "echo $PATH; exec sh")
        assert (await nodes["n1"].run(command)).stdout.startswith("/usr/bin:/bin:/o'dd\n")


def test_what_a_script_does_not_know_is_refused_here(tmp_path: Path) -> None:
    node = Node(local=True, api="http://127.0.0.1:1", process=ExoProcess(home="/exo"), rig_dir=str(tmp_path))
    with pytest.raises(ConfigError, match=r"show\.sh knows no hlod"):
        script_command(node, "show.sh", {"hlod": "1"}, bundle(tmp_path))
    with pytest.raises(ConfigError, match=r"no node script shwo\.sh"):
        script_command(node, "shwo.sh", {}, bundle(tmp_path / "other"))


@pytest.mark.parametrize("script", sorted({kind.script for kind in KINDS.values() if not isinstance(kind.aim, Pair)}))
def test_every_script_of_a_fault_takes_what_is_common_to_all(script: str) -> None:
    node = Node(local=True, api="http://127.0.0.1:1", process=ExoProcess(home="/exo"))
    common = {"id": "x", "run": "r", "owner": "o", "lock": "l", "hold": "1", "at": "1"}
    assert f"/{script}" in script_command(node, script, {**process_values(node), **common})


async def test_rig_dir_of_somebody_else_is_refused(server: SshServer, tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    (tmp_path / "link").symlink_to(real)
    (tmp_path / "file").touch()
    scripts = bundle(tmp_path)
    for place in (tmp_path / "link", tmp_path / "file", tmp_path / "file" / "below"):
        async with open_nodes(server.inventory(n1=server.node(rig_dir=str(place)))) as nodes:
            with pytest.raises(NodeNotReady, match="cannot put node scripts"):
                await upload(nodes["n1"], scripts)
    assert not list(real.iterdir())
