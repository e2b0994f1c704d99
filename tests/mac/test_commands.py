"""What node scripts and the rig count on finding on a Mac, and on not finding."""

from __future__ import annotations

import re
from datetime import datetime, timedelta

import pytest

from tests.mac.mac import Tools


@pytest.mark.parametrize(
    "command", ["setsid", "timeout", "nft", "iptables", "ip", "ss", "systemctl", "tc", "flock", "pidof", "free"]
)
def test_absent(tools: Tools, command: str) -> None:
    assert tools.mac.run(f"command -v {command}").status != 0


@pytest.mark.parametrize(
    "path",
    [
        *("/bin/sh", "/bin/ps", "/bin/launchctl", "/bin/df", "/bin/sleep", "/usr/bin/perl", "/usr/bin/nc"),
        *("/usr/bin/sed", "/usr/bin/awk", "/usr/bin/stat", "/usr/bin/vm_stat", "/usr/bin/fdesetup", "/usr/bin/pmset"),
        *("/usr/bin/sw_vers", "/usr/bin/memory_pressure", "/usr/bin/plutil", "/sbin/pfctl", "/sbin/ifconfig"),
        *("/sbin/shutdown", "/sbin/reboot", "/usr/sbin/sysctl", "/usr/sbin/lsof", "/usr/sbin/dnctl"),
        *("/usr/sbin/networksetup", "/usr/sbin/system_profiler", "/usr/libexec/ApplicationFirewall/socketfilterfw"),
    ],
)
def test_present(tools: Tools, path: str) -> None:
    tools.must(f"test -x {path}")


@pytest.mark.parametrize(
    "command",
    [
        "date -d now",
        "stat -c %s /etc/hosts",
        "sed -i s/a/b/ /etc/does-not-exist",
        "sed --expression=p /etc/hosts",
        "ps --no-headers -e",
        "ps -o nosuchkeyword= -p 1",
        "grep -P . /etc/hosts",
        "sleep x",
        "sysctl -n no.such.name",
        "test -e /proc/self",
        "test -e /proc/uptime",
        "launchctl print system/no.such.job",
    ],
)
def test_fails(tools: Tools, command: str) -> None:
    """What works with GNU's tools, or on Linux."""
    assert tools.mac.run(command).status != 0


def test_ps(tools: Tools) -> None:
    assert re.fullmatch(r"\s*1\s+\S+\s+0\s*\n", tools.must("ps -o pid= -o state= -o ppid= -p 1"))
    started = tools.must("ps -o lstart= -p 1").strip()
    assert re.fullmatch(r"[A-Z][a-z]{2} [A-Z][a-z]{2} [ 0-9]\d \d\d:\d\d:\d\d \d{4}", started), started
    assert "ps -axww" in tools.must("ps -axww -o pid,ppid,command")
    assert tools.mac.run("ps -o pid= -p 99999").status == 1
    stopped = tools.must("sleep 5 & kill -STOP $!; ps -o stat= -p $!; kill -KILL $!")
    assert stopped.startswith("T"), stopped


def test_starts_are_local_time_of_who_asks(tools: Tools) -> None:
    told = [
        datetime.strptime(f"{tools.must(f'TZ={zone} ps -o lstart= -p 1').strip()} +0000", "%a %b %d %H:%M:%S %Y %z")
        for zone in ("UTC0", "EST5")
    ]
    assert told[1] - told[0] == timedelta(hours=-5)


def test_facts(tools: Tools) -> None:
    assert tools.must("uname -s") == "Darwin\n"
    assert re.fullmatch(r"[0-9A-F-]{36}\n", tools.must("sysctl -n kern.bootsessionuuid"))
    assert int(tools.must("sysctl -n hw.memsize")) > 2**28
    assert re.search(r"page size of \d+ bytes", tools.must("vm_stat"))
    assert re.search(r"Pages wired down: +\d+\.", tools.must("vm_stat"))
    assert tools.must("fdesetup status").startswith("FileVault is O")
    assert re.search(r"\bsleep +\d", tools.must("pmset -g"))
    assert re.match(r"\d+\.", tools.must("sw_vers -productVersion"))
    assert len(tools.must("df -Pk /tmp").splitlines()[1].split()) >= 6
    assert tools.mac.peer.interface in tools.must("ifconfig -l").split()
    route = tools.must(f"route -n get {tools.mac.peer.address}")
    assert re.search(rf"interface: {tools.mac.peer.interface}\n", route), route
    assert re.search(r"inet \S+ netmask 0x[0-9a-f]{8}", tools.must(f"ifconfig {tools.mac.peer.interface}"))


def test_sh_and_perl(tools: Tools) -> None:
    assert tools.must("sh -c 'set -u -f; x=abc; printf %s ${x%c}'") == "ab"
    clock = "perl -MTime::HiRes=clock_gettime,CLOCK_MONOTONIC -e 'printf q(%.3f), clock_gettime(CLOCK_MONOTONIC)'"
    assert float(tools.must(f"sleep 0.2; {clock}")) > 0
    assert tools.must("""perl -MPOSIX -e 'POSIX::setsid(); exec @ARGV' sh -c 'ps -o pgid= -p $$'""").strip().isdigit()
