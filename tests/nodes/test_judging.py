"""What facts mean: each check in each of its answers."""

from __future__ import annotations

import pytest

from rig.config.inventory import Node, Ssh
from rig.faults.plan.registry import KINDS
from rig.nodes.doctor import Finding
from rig.nodes.facts import parse_facts
from rig.nodes.judging import judge, judge_instances, judge_paths, judge_versions, judge_wall
from rig.targets.exo.fields import ExoProcess

NODE = Node(ssh=Ssh(host="studio-1"), api="http://studio-1:52415", process=ExoProcess(home="/Users/exo/.exo"))
USUAL: tuple[str, ...] = ("node-crash", "freeze", "partition")
GUARDED = {"guard_seen": "100.0 boot-1", "boot_id": "boot-1", "clock": "103.0", "guard_current": "1"}


def found(check: str, facts: dict[str, str], kinds: tuple[str, ...] = USUAL) -> list[Finding]:
    return [one for one in judge("n1", NODE, facts, kinds) if one.check == check]


@pytest.mark.parametrize(
    ("check", "facts", "level", "says"),
    [
        ("home", {"home": "0"}, "fail", "is not there"),
        ("home", {"home": "1", "home_writable": "0", "user": "rig"}, "warn", "cannot be written by rig"),
        ("home", {"home": "1", "home_writable": "1"}, "ok", "/Users/exo/.exo"),
        ("foreign exo", {"exo_processes": "5 7 ", "main": "5"}, "warn", ": 7"),
        ("sudo", {"user": "root"}, "warn", "logs in as root"),
        ("sudo", {"user": "rig", "sudo_rules": "(root) NOPASSWD: ALL"}, "warn", "may do everything"),
        ("sudo", {"user": "rig", "sudo_rules": "(root) NOPASSWD: /sbin/pfctl ^-E$"}, "ok", "1 narrow rules"),
        ("sudo", {"user": "rig"}, "warn", "no command is allowed"),
        ("packet filter", {"pf_error": "sudo: a password is required"}, "fail", "a password is required"),
        ("pf anchor", {"pf_anchor": "0"}, "fail", "does not reference"),
        ("pf anchor", {"pf_anchor": "1"}, "ok", "stock wildcard"),
        ("guard", {}, "warn", "no node guard"),
        ("guard", GUARDED | {"boot_id": "boot-2"}, "warn", "no node guard"),
        ("guard", GUARDED | {"clock": "200"}, "warn", "no node guard"),
        ("guard", GUARDED | {"guard_current": "0"}, "fail", "another version"),
        ("guard", GUARDED, "ok", "every 4 s"),
        ("sleep", {"power": "sleep 1;autorestart 1;"}, "fail", "sleeps after 1 minutes"),
        ("sleep", {"power": "sleep 0;autorestart 1;"}, "ok", "never"),
        ("sleep", {"power": "SleepDisabled 1;sleep 10;"}, "ok", "never"),
        ("power", {"power": "sleep 0;autorestart 0;"}, "warn", "does not start again"),
        ("FileVault", {"filevault": "FileVault is On."}, "warn", "FileVault is On"),
        ("FileVault", {"filevault": "FileVault is Off."}, "ok", "Off"),
        ("firewall", {"firewall": "Firewall is enabled. (State = 1)"}, "warn", "enabled"),
        ("firewall", {"firewall": "Firewall is disabled. (State = 0)"}, "ok", "disabled"),
        ("local network", {"version": "15.6", "main": "5"}, "warn", "no launchd job"),
        ("local network", {"version": "26.2", "main": "5", "exo_job": "io.rig.exo"}, "ok", "io.rig.exo"),
        ("RDMA", {"rdma": "enabled", "rdma_devices": "rdma_en2 "}, "warn", "rdma_en2"),
        ("RDMA", {"rdma": "disabled"}, "ok", "disabled"),
        ("MLX", {"mlx": "ModuleNotFoundError: No module named 'mlx'"}, "warn", "not tried"),
        ("MLX", {"mlx": "262144"}, "ok", "computes"),
        ("MLX", {"mlx": "RuntimeError: no Metal device"}, "fail", "no Metal device"),
    ],
)
def test_one_fact_one_finding(check: str, facts: dict[str, str], level: str, says: str) -> None:
    [finding] = found(check, facts)
    assert (finding.level, says in finding.text) == (level, True), finding
    assert (finding.remedy == "") == (level == "ok") or level == "ok"


def test_what_is_not_known_is_not_judged() -> None:
    assert [one.check for one in judge("n1", NODE, {"user": "rig"}, USUAL)] == ["sudo", "guard"]
    assert found("local network", {"version": "14.5", "main": "5"}) == []


def test_only_what_is_struck_may_fail() -> None:
    assert found("FileVault", {"filevault": "FileVault is On."}, ("reboot",))[0].level == "fail"
    assert found("pf anchor", {"pf_anchor": "0"}, ("freeze",))[0].level == "warn"
    assert found("net-delay", {"shaping": "nft"}, tuple(KINDS))[0].level == "warn"
    assert found("net-delay", {"shaping": "netem nft"}, tuple(KINDS)) == []


def test_exo_must_be_the_same_everywhere() -> None:
    same = judge_versions({"a": {"exo_version": "0.3.70"}, "b": {"exo_version": "0.3.70"}, "c": {}})
    assert [(one.node, one.level) for one in same] == [("a", "ok"), ("b", "ok")]
    differing = judge_versions({"a": {"exo_revision": "abc"}, "b": {"exo_revision": "def"}})
    assert {one.level for one in differing} == {"fail"}
    assert "a abc, b def" in differing[0].text


def test_paths_and_clocks() -> None:
    assert judge_paths("a", {}, {}) == []
    assert [one.level for one in judge_paths("a", {"b at 1": True, "b at 2": False}, {"x.local": False})] == [
        "warn"
    ] * 2
    assert judge_paths("a", {"b at 1": False}, {})[0].level == "fail"
    assert judge_wall("a", {"wall": "1000"}, 1001.5)[0].level == "ok"
    assert judge_wall("a", {"wall": "1000"}, 900.0)[0].level == "warn"
    assert judge_wall("a", {}, 900.0) == []


def test_lines_that_are_no_facts_are_dropped() -> None:
    assert parse_facts("user=rig\nnonsense\nsudo_rules=a=b\n a b=c\n") == {"user": "rig", "sudo_rules": "a=b"}


def test_instances_that_nobody_deployed() -> None:
    [sound] = judge_instances("a", {"i1": "m"}, {"m", "other"})
    assert (sound.level, sound.text) == ("ok", "1, each of a deployment")
    [foreign] = judge_instances("a", {"i1": "m", "i2-of-somebody": "theirs"}, {"m"})
    assert foreign.level == "warn"
    assert "theirs (i2-of-so)" in foreign.text
