from __future__ import annotations

from rig.targets.exo.discover import (
    exo_mains,
    parse_addresses,
    parse_cgroup,
    parse_launchd,
    parse_listening,
    parse_processes,
)

LINUX = """1: lo    inet 127.0.0.1/8 scope host lo\\       valid_lft forever
1: lo    inet6 ::1/128 scope host \\       valid_lft forever
2: eth0    inet 10.77.0.1/24 brd 10.77.0.255 scope global eth0\\       valid_lft forever
2: eth0    inet6 fe80::77:1/64 scope link \\       valid_lft forever
3: docker0    inet 172.17.0.1/16 scope global docker0\\       valid_lft forever
7: en5@if8    inet 169.254.7.8/16 scope link en5\\       valid_lft forever
"""
MAC = """lo0: flags=8049<UP,LOOPBACK,RUNNING,MULTICAST> mtu 16384
\tinet 127.0.0.1 netmask 0xff000000
\tinet6 fe80::1%lo0 prefixlen 64 scopeid 0x1
en0: flags=8863<UP,BROADCAST,SMART,RUNNING,SIMPLEX,MULTICAST> mtu 1500
\tether 1c:2b:34:56:11:01
\tinet6 fe80::1c2b:34ff:fe56:1101%en0 prefixlen 64 secured scopeid 0xb
\tinet 192.168.10.11 netmask 0xffffff00 broadcast 192.168.10.255
awdl0: flags=8943<UP,BROADCAST,RUNNING,PROMISC,SIMPLEX,MULTICAST> mtu 1500
\tinet6 fe80::64b3:1dff:fe01:1%awdl0 prefixlen 64 scopeid 0xd
utun4: flags=8051<UP,POINTOPOINT,RUNNING,MULTICAST> mtu 1280
\tinet 100.64.1.2 --> 100.64.1.2 netmask 0xffffffff
"""
PS = """    1     0 root /sbin/init
  900     1 exo  uv run exo --offline
  901   900 exo  /Users/exo/exo/.venv/bin/python -m exo --offline
  902   901 exo  /Users/exo/exo/.venv/bin/python -B -c from multiprocessing.resource_tracker import main;main(6)
  903   901 exo  /Users/exo/exo/.venv/bin/python -B -c from multiprocessing.spawn import x --multiprocessing-fork
  950     1 bob  vi /home/bob/exo
"""


def test_addresses() -> None:
    assert [one.address for one in parse_addresses(LINUX)] == ["10.77.0.1", "fe80::77:1%eth0", "169.254.7.8"]
    assert [(one.interface, one.address) for one in parse_addresses(MAC)] == [
        ("en0", "fe80::1c2b:34ff:fe56:1101%en0"),
        ("en0", "192.168.10.11"),
        ("utun4", "100.64.1.2"),
    ]


def test_the_main_process_is_neither_uv_nor_a_runner() -> None:
    assert [row.pid for row in exo_mains(parse_processes(PS))] == [901]


def test_ports() -> None:
    assert parse_listening("p11\nf22\nn*:52414\nf27\nn127.0.0.1:52415\nn[::1]:52415\n") == [52414, 52415]
    text = 'LISTEN 0 100 0.0.0.0:52415 0.0.0.0:* users:(("python",pid=11,fd=27))\n'
    assert parse_listening(text) == [52415]


def test_supervisors() -> None:
    assert parse_launchd("\tservices = {\n\t\t    901      - \tnet.exo.node\n\t\t 0 - \tother\n", 901) == "net.exo.node"
    assert parse_launchd("901\t0\tnet.exo.node\n", 90) is None
    assert parse_cgroup("0::/system.slice/exo.service\n") == "exo.service"
    assert parse_cgroup("0::/user.slice/user-0.slice/user@0.service\n") is None
    assert parse_cgroup("0::/system.slice/ssh.service\n") is None
