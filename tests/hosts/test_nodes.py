"""Nodes in namespaces: apart from each other and from this machine, and gone without a trace."""

from __future__ import annotations

import contextlib
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from rig.lab.embedded.reap import marked
from rig.lab.embedded.sampler import ProcessSeen, read_samples
from rig.lab.hosts.addresses import controller_link
from rig.lab.hosts.nft_rules import dropped, parse
from tests.hosts.hosts import API_PORT, Hosts, run, until


def test_each_node_is_a_machine_of_its_own(hosts: Hosts) -> None:
    for node in ("node-1", "node-2"):
        assert hosts.ssh(node, "uname -n").out == f"{node}\n"
        assert "sshd" in hosts.ssh(node, "ps -axww -o command=").out
        assert hosts.ssh(node, "ps -o command= -p 1").out.startswith(hosts.layout.python)
    assert hosts.ssh("node-1", "cat /proc/sys/kernel/random/boot_id").out != (
        hosts.ssh("node-2", "cat /proc/sys/kernel/random/boot_id").out
    )
    assert hosts.ssh("node-1", "echo mine >/etc/rig-test && cat /etc/rig-test").out == "mine\n"
    assert hosts.ssh("node-2", "test -e /etc/rig-test").status == 1
    assert not Path("/etc/rig-test").exists()


def test_pids_of_different_nodes_differ(hosts: Hosts) -> None:
    mains = {int((hosts.node_folder(node) / "exo" / "exo.pid").read_text()) for node in hosts.layout.nodes}
    assert len(mains) == 3


def test_the_controller_is_seen_at_its_address(hosts: Hosts) -> None:
    said = hosts.ssh("node-1", "echo $SSH_CONNECTION").out.split()
    assert said[0] == f"10.77.{hosts.layout.subnet}.250"
    assert said[2:] == [hosts.address("node-1"), "22"]


def test_a_link_that_comes_back_has_its_addresses(hosts: Hosts) -> None:
    assert hosts.inside("node-2", "ip link set tb0 down").status == 0
    assert not hosts.reaches("node-1", hosts.address("node-2", "thunderbolt6"), 52414)
    assert hosts.inside("node-2", "ip link set tb0 up").status == 0
    until(lambda: hosts.reaches("node-1", hosts.address("node-2", "thunderbolt6"), 52414), "IPv6 is back")
    assert hosts.reaches("node-1", hosts.address("node-2", "thunderbolt4"), API_PORT)


def test_the_sampler_names_processes_as_the_node_does(hosts: Hosts) -> None:
    main = int((hosts.node_folder("node-1") / "exo" / "exo.pid").read_text())
    assert hosts.ssh("node-1", f"ps -o command= -p {main}").out.find("rig.lab.embedded.process") > 0
    samples = list(read_samples(hosts.layout.folder))
    assert any(
        isinstance(sample, ProcessSeen) and (sample.node, sample.pid, sample.role) == ("node-1", main, "main")
        for sample in samples
    )


def test_changes_of_the_filter_are_in_the_ledger(hosts: Hosts) -> None:
    """By the node's nft, with the command and what was dropped, and past it."""
    nobody = f"10.77.{hosts.layout.subnet}.200"
    rules = f"table inet rig_x {{ chain o {{ type filter hook output priority 0; ip daddr {nobody} counter drop; }}; }}"
    packet = f'socket(S,PF_INET,SOCK_DGRAM,17); send(S,"x",0,sockaddr_in(9,inet_aton("{nobody}"))); exit 0'
    assert hosts.inside("node-3", f"nft '{rules}' && perl -MSocket -e '{packet}'").status == 0
    assert hosts.inside("node-3", "nft delete table inet rig_x").status == 0
    until(lambda: len(filters(hosts, "node-3")) >= 2, "both changes are noted")
    loaded, removed = filters(hosts, "node-3")[-2:]
    assert loaded["rules"] == [f"inet rig_x out: ip daddr {nobody} counter drop"]
    assert (removed["command"], removed["rules"]) == ("nft delete table inet rig_x", [])
    assert int(str(removed["packets"])) >= 1
    before = len(filters(hosts, "node-3"))
    for number, change in enumerate((f"'{rules}'", "delete table inet rig_x"), start=1):
        assert hosts.inside("node-3", f"/usr/sbin/nft {change}").status == 0
        until(lambda number=number: len(filters(hosts, "node-3")) == before + number, f"noted: {change}")


def filters(hosts: Hosts, node: str) -> list[dict[str, object]]:
    lines = [
        line
        for path in sorted((Path(hosts.layout.folder) / "ledger").glob(f"{node}-machine-*"))
        for line in path.read_text().splitlines()
    ]
    return [entry for entry in map(json.loads, lines) if entry["kind"] == "filter"]


def test_reboot(hosts: Hosts) -> None:
    before = booted(hosts)
    assert hosts.ssh("node-3", "nft add table inet left_over; echo kept >/etc/kept; reboot").status in {0, 255}
    until(lambda: booted(hosts) not in {"", before}, "boots")
    assert hosts.inside("node-3", "nft list tables").out == ""
    assert hosts.inside("node-3", "cat /etc/kept").out == "kept\n"
    until(lambda: hosts.reaches("node-2", hosts.address("node-3"), API_PORT), "exo is back")


def booted(hosts: Hosts) -> str:
    return hosts.ssh("node-3", "cat /proc/sys/kernel/random/boot_id", timeout_s=5).out


def kill_supervisor(hosts: Hosts) -> None:
    os.kill(hosts.supervisor_pid, signal.SIGKILL)


def kill_all_that_enter(hosts: Hosts) -> None:
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            words = " ".join(process.cmdline())
            if "rig.lab.hosts.enter" in words and hosts.layout.folder in words:
                process.kill()


@pytest.mark.parametrize("kill", [kill_supervisor, kill_all_that_enter])
def test_nothing_stays_whoever_dies(own_hosts: Hosts, kill: Callable[[Hosts], None]) -> None:
    """Also of what runs on a node stopped, and in a session of its own."""
    stopped = "perl -MPOSIX -e 'POSIX::setsid(); kill STOP => $$' </dev/null >/dev/null 2>&1 &"
    assert own_hosts.ssh("node-1", stopped).status == 0
    cable, address = controller_link(own_hosts.layout.subnet), own_hosts.address("node-1")
    assert cable in run(["ip", "route", "get", address]).out
    kill(own_hosts)
    until(lambda: not list(marked(f"{own_hosts.layout.cluster}/")), "every process of the cluster is gone")
    until(lambda: not Path("/sys/class/net", cable).exists(), "the controller's cable is gone")
    # An address of a node is unreachable from here now, not somebody else's.
    got = run(["ip", "route", "get", address])
    assert got.status != 0, got


def test_parse_of_a_listing() -> None:
    listing = (
        "table inet a {\n\tchain input {\n\t\ttype filter hook input priority raw; policy accept;\n"
        "\t\tip saddr 10.0.0.1 counter packets 7 bytes 420 drop\n\t\tcounter packets 2 bytes 1 accept\n\t}\n"
        "\tchain own {\n\t\tdrop\n\t}\n}\n"
    )
    rules = parse(listing)
    assert [str(rule) for rule in rules] == [
        "inet a in: ip saddr 10.0.0.1 counter drop",
        "inet a in: counter accept",
    ]
    assert dropped(rules) == {"inet a": 7}


def test_a_path_without_the_folders_of_system_tools_will_do(bare_hosts: Hosts) -> None:
    """What looks after the node flushes its packet filter, with the tools of this machine, before it boots again."""
    boot = bare_hosts.ssh("node-1", "cat /proc/sys/kernel/random/boot_id").out
    bare_hosts.ssh("node-1", "reboot")

    def rebooted() -> bool:
        again = bare_hosts.ssh("node-1", "cat /proc/sys/kernel/random/boot_id")
        return again.status == 0 and again.out != boot

    until(rebooted, "the node is back after its reboot")
