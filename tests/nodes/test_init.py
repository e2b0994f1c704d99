"""`rig init` against a real server, and what it writes read back by the rig."""

from __future__ import annotations

import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rig.config.inventory import Ssh
from rig.config.read import load_inventory
from rig.errors import UsageError
from rig.targets.exo.discover import Discovered, FoundAddress
from rig.targets.exo.init import Surveyed, parse_host, render
from tests.nodes.fakeexo import FakeExo
from tests.nodes.servers import SshServer, ssh_of


def rig(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "rig", *arguments], capture_output=True, text=True, timeout=60, check=False
    )


def test_hosts() -> None:
    assert parse_host("exo@studio-1.local:2222", None) == Ssh(host="studio-1.local", port=2222, user="exo")
    assert parse_host("[fd00::1]:23", Path("/k")) == Ssh(host="fd00::1", port=23, key="/k")
    for bad in ("", "a b", "u@", "host:port", "host:99999", "-oProxyCommand=x", "a@b@c"):
        with pytest.raises(UsageError):
            parse_host(bad, None)


def test_what_is_written_can_be_loaded(tmp_path: Path) -> None:
    nasty = 'x\n\nevil: "1" # $(y) é'
    one = Discovered(
        "Darwin",
        "Studio 1.local",
        "exo",
        [
            FoundAddress("en0", "192.168.1.5"),
            FoundAddress("en0", "fe80::1%en0"),
            FoundAddress("bridge0", "192.168.2.1"),
        ],
        home="/Users/exo/.exo",
        pid=7,
        command=nasty,
        port=52415,
        start='launchctl "kickstart" $x',
        started_by=nasty,
        notes=[nasty],
    )
    other = Discovered("Linux", "studio-1", "root", [FoundAddress("b", "192.168.2.1")], home="/root/.cache/exo")
    ends = [Ssh(host="a", user="exo", host_key="ssh-ed25519 AAAA"), Ssh(host="b", key="/k")]
    text = render(
        [Surveyed(ends[0], pinned=True, found=one), Surveyed(ends[1], pinned=False, found=other)],
        "my lab",
        datetime.now(UTC),
    )
    path = tmp_path / "written.yaml"
    path.write_text(text)
    inventory = load_inventory(str(path))
    first, second = inventory.nodes.values()
    assert list(inventory.nodes) == ["studio-1", "studio-1-2"]
    assert first.addresses == ["192.168.1.5", "fe80::1%en0"]
    assert (first.process.start, ssh_of(first).host_key) == ('launchctl "kickstart" $x', "ssh-ed25519 AAAA")
    assert (second.process.start, second.addresses, second.sudo) == (None, [], False)
    assert "192.168.2.1" in text
    assert "# ?" in text


@pytest.mark.parametrize(
    ("system", "user", "example"),
    [("Linux", "root", "systemctl start UNIT"), ("Darwin", "exo", "sudo -n /bin/launchctl kickstart system/LABEL")],
)
def test_the_example_of_a_start_command_is_one_of_that_system(system: str, user: str, example: str) -> None:
    found = Discovered(system, "n", user, [], home="/h")
    text = render([Surveyed(Ssh(host="n"), pinned=False, found=found)], "mine", datetime.now(UTC))
    assert f'# start: "{example}"' in text


def test_against_a_host(server: SshServer, tmp_path: Path) -> None:
    exo = FakeExo(tmp_path / "exo")
    main = exo.start()
    out = tmp_path / "inventories" / "mine.yaml"
    key = str(server.folder / "client_key")
    try:
        done = rig("init", f"127.0.0.1:{server.port}", "--key", key, "--out", str(out))
        assert (done.returncode, done.stderr) == (0, "")
        inventory = load_inventory(str(out))
        [node] = inventory.nodes.values()
        assert ssh_of(node).host_key == server.host_key
        assert str(main.pid) in out.read_text() or "several processes look like exo" in done.stdout
        assert node.process.start is None
        again = rig("init", f"127.0.0.1:{server.port}", "--key", key, "--out", str(out))
        assert again.returncode == 2
        assert "--force" in again.stderr
    finally:
        exo.kill()


def test_hosts_that_cannot_be_reached(tmp_path: Path) -> None:
    out = tmp_path / "mine.yaml"
    done = rig("init", "127.0.0.1:1", "--out", str(out))
    assert done.returncode == 3
    assert "showed no SSH host key" in done.stdout
    assert "Traceback" not in done.stderr
    assert not out.exists()
