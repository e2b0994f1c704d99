from __future__ import annotations

import os
from pathlib import Path

import pytest

from rig.errors import NodeError
from rig.nodes.inspect import parse_inspection
from rig.nodes.open import open_nodes
from rig.nodes.upload import upload
from rig.targets.exo.fields import ExoProcess
from tests.nodes.fakeexo import FakeExo
from tests.nodes.servers import SshServer, boot_id

TEXT = """clock=123.450
boot_id=abc
os=Darwin
main_pid=11
main_start=Mon_Nov_30_01:00:00_2026
main_cmd=python -m exo --x=1
proc=11|1|Mon_Nov_30_01:00:00_2026|S|python -m exo --x=1
proc=12|11|7|S|python -c from multiprocessing.resource_tracker import main;main(6)
proc=13|11|8|T|python -c spawn_main(a|b) --multiprocessing-fork
proc=broken
orphan=9|1|3|S|python --multiprocessing-fork
master_log=Node elected Master - promoting self
master_claim=1
master_files=0
mem_available=1000
disk_free=x
lease=run.1|freeze|me@host|a run|100.0|120.5|struck|1|0
lock=owner=me=you
lock=deadline=130.0
uid=0
sudo_filter=1
have_nc=/usr/bin/nc
have_lsof=
"""


def test_parse() -> None:
    seen = parse_inspection("n1", TEXT, ExoProcess.is_worker)
    assert seen.main is not None
    assert (seen.main.pid, seen.main.identity) == (11, "11:Mon_Nov_30_01:00:00_2026")
    assert [runner.command for runner in seen.workers] == ["python -c spawn_main(a|b) --multiprocessing-fork"]
    assert [orphan.pid for orphan in seen.orphans] == [9]
    assert (seen.master_claim, seen.master_files) == (True, False)
    assert (seen.mem_available_bytes, seen.mem_wired_bytes, seen.disk_free_bytes) == (1000, None, None)
    assert [(one.id, one.deadline_node_t, one.same_boot, one.script_alive) for one in seen.leases] == [
        ("run.1", 120.5, True, False)
    ]
    assert seen.lock == {"owner": "me=you", "deadline": "130.0"}
    assert seen.tools == {"nc": "/usr/bin/nc"}
    assert seen.unreadable == ["broken"]


def test_parse_without_exo_and_without_a_clock() -> None:
    assert parse_inspection("n1", "clock=1.0\nmaster_claim=\n").main is None
    assert parse_inspection("n1", "clock=1.0\nmaster_claim=\n").master_claim is None
    with pytest.raises(NodeError, match="no clock"):
        parse_inspection("n1", "sh: not found\n")


def test_who_was_elected_and_for_how_long_it_has_claimed() -> None:
    since = "2026-01-01 10:00:00.500 | INFO | exo:elect:1 - Node elected Master - promoting self"
    claims = parse_inspection("n1", f"clock=1\nmaster_since={since}\nlog_now=2026-01-01 10:01:30\nnode_id=12D3\n")
    assert (claims.master_claimed_s, claims.node_id, claims.elected_id) == (90.0, "12D3", "")
    follows = parse_inspection("n1", "clock=1\nmaster_log=10:00 | Node 12D9 elected master - demoting self\n")
    assert (follows.master_claimed_s, follows.elected_id) == (None, "12D9")
    odd = parse_inspection("n1", "clock=1\nmaster_since=2026-99-01 10:00:00 x\nlog_now=2026-01-01 10:01:30\n")
    assert odd.master_claimed_s is None


async def test_against_processes(server: SshServer, tmp_path: Path) -> None:
    exo = FakeExo(tmp_path / "it's exo", runners=2, master=True)
    inventory = server.inventory(n1=server.node(process=exo.process()))
    async with open_nodes(inventory) as nodes:
        await upload(nodes["n1"])
        assert (await nodes["n1"].inspect()).main is None
        main = exo.start()
        try:
            seen = await nodes["n1"].inspect()
            assert seen.main is not None
            assert seen.main.pid == main.pid
            assert {one.pid for one in seen.tree} == {one.pid for one in exo.tree()}
            assert {one.state for one in seen.tree} <= {"S", "R", "D"}
            assert len(seen.workers) == 2
            assert (seen.master_claim, seen.master_files) == (True, True)
            assert seen.uid == os.getuid()
            assert seen.boot_id == boot_id()
            assert (seen.mem_available_bytes or 0) > 1_000_000
            assert (seen.disk_free_bytes or 0) > 1_000_000
            assert "nc" in seen.tools
            assert seen.leases == []
            only = await nodes["n1"].inspect("procs", pids=[main.pid])
            assert [one.identity for one in only.tree] == [seen.main.identity]
        finally:
            exo.kill()
