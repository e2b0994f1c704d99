"""What the rig's own machine cannot do is void, and no error of the target."""

from __future__ import annotations

import errno
import json
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rig.journal.records import RequestEnded
from rig.load.addresses import addresses_of, is_own
from rig.load.request import perform
from rig.load.transport import LoadTransport
from tests.load.calls import call
from tests.load.conftest import Recorded
from tests.load.servers import free_port, serving, sound, start_mock

NO_NAME = "nobody.invalid"  # reserved: no such name is ever known


async def asked(recorded: Recorded, url: str) -> RequestEnded:
    return await perform(call(url), LoadTransport(recorded.journal.now), recorded.journal)


def os_error(number: int) -> OSError:
    return OSError(number, "")


@pytest.mark.parametrize(
    ("failures", "host", "own"),
    [
        ([os_error(errno.ECONNREFUSED)], "h", False),
        ([os_error(errno.EHOSTUNREACH)], "h", False),
        *(
            ([os_error(number)], "h", True)
            for number in (errno.EADDRNOTAVAIL, errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENETUNREACH)
        ),
        ([os_error(errno.ENETUNREACH), os_error(errno.ECONNREFUSED)], "h", False),  # no IPv6 here, and refused
        ([socket.gaierror(socket.EAI_NONAME, "")], "h", True),
        ([socket.gaierror(socket.EAI_AGAIN, "")], "h.lan", True),
        ([socket.gaierror(socket.EAI_NONAME, "")], "studio-1.local", False),  # the host itself would tell it
    ],
)
def test_whose_failure_it_is(failures: list[OSError], host: str, own: bool) -> None:  # noqa: FBT001
    assert is_own(failures, host) == own


async def test_an_address_needs_no_looking_up_and_a_name_has_several() -> None:
    assert await addresses_of("fe80::1%eth0", 1) == ["fe80::1%eth0"]
    assert "127.0.0.1" in await addresses_of("localhost", 1)


async def test_a_name_without_an_address_is_the_rigs_own_failure(recorded: Recorded) -> None:
    ended = await asked(recorded, f"http://{NO_NAME}:1")
    assert (ended.outcome, ended.connected_t) == ("error", None)
    assert ended.own_failure is not None
    assert "no connection: of the rig's own machine" in ended.evidence


def take_all(taken: list[socket.socket]) -> None:
    """Open sockets until no more can be. Raises OSError."""
    while True:
        taken.append(socket.socket())


async def test_no_more_open_files_is_the_rigs_own_failure(recorded: Recorded) -> None:
    async with serving(sound) as server:
        assert (await asked(recorded, server.url)).outcome == "completed"
        limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        spare = socket.socket()
        resource.setrlimit(resource.RLIMIT_NOFILE, (spare.fileno(), limits[1]))
        taken: list[socket.socket] = []
        try:
            with pytest.raises(OSError, match="Too many open files"):
                take_all(taken)
            ended = await asked(recorded, server.url)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            for each in (spare, *taken):
                each.close()
    assert (ended.outcome, ended.own_failure is not None) == ("error", True)
    assert "Too many open files" in ended.evidence


async def test_a_refusal_is_the_targets(recorded: Recorded) -> None:
    for host in ("127.0.0.1", "localhost"):
        ended = await asked(recorded, f"http://{host}:{free_port()}")
        assert (ended.outcome, ended.own_failure) == ("error", None)
        assert ended.evidence.startswith("no connection: ConnectError")


def rig_load(*arguments: str, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    command = [*before, sys.executable, "-m", "rig", "load", "-m", "mock", "--json", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def test_rig_load_counts_it_void_and_knows_nothing_of_the_target() -> None:
    done = rig_load("--url", f"http://{NO_NAME}:1", "-n", "2", "-c", "1")
    found = json.loads(done.stdout)
    assert (found["requests"]["error"], found["requests"]["void"]) == (0, 2)
    assert done.returncode == 3
    assert "2 requests are void" in done.stderr


@pytest.mark.skipif(shutil.which("unshare") is None, reason="network namespaces are of Linux")
def test_a_controller_without_ports_does_not_blame_the_target(sse_mock: Path) -> None:
    port = free_port()
    script = (
        "ip link set lo up; echo 40000 40003 >/proc/sys/net/ipv4/ip_local_port_range; "
        '"$1" --port "$2" --tokens 2 --ttft 300 & server=$!; shift 2; sleep 1; '
        '"$@"; status=$?; kill $server; exit $status'
    )
    before = ("unshare", "-rn", "sh", "-c", script, "sh", str(sse_mock), str(port))
    done = rig_load("--url", f"http://127.0.0.1:{port}", "-n", "24", "-c", "8", before=before)
    requests = json.loads(done.stdout)["requests"]
    assert requests["void"] > 0, done.stderr
    assert (requests["error"], requests["lost"]) == (0, 0)
    assert requests["completed"] + requests["void"] == 24
    assert done.returncode == 3
    assert "Cannot assign requested address" in done.stderr


@pytest.mark.parametrize("kept", ["completed", "hung"])
def test_a_rig_that_was_stopped_says_so(sse_mock: Path, tmp_path: Path, kept: str) -> None:
    """SIGSTOP and SIGCONT in the middle of streams: the gap is the rig's, and so is a deadline that ran out in it."""
    modes = {"completed": ("--itl", "50"), "hung": ("--fault", "stall", "--every", "1")}
    server, url = start_mock(sse_mock, "--tokens", "60", *modes[kept])
    journal = tmp_path / "kept" / "journal.jsonl"
    command = [sys.executable, "-m", "rig", "load", "-m", "mock", "--url", url, "--json", "-n", "2", "-c", "2"]
    rig = subprocess.Popen(
        [*command, "--progress-deadline", "3s", "--out", str(tmp_path / "kept")],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        deadline = time.monotonic() + 60
        while not journal.exists() or journal.read_bytes().count(b'"request_start"') < 2:
            assert time.monotonic() < deadline
            time.sleep(0.02)
        rig.send_signal(signal.SIGSTOP)
        time.sleep(4.0)  # the length of the stop, which is what is measured
        rig.send_signal(signal.SIGCONT)
        stdout, stderr = rig.communicate(timeout=60)
    finally:
        rig.kill()
        server.terminate()
        server.wait()
    found = json.loads(stdout)
    assert found["stood_still_s"] >= 3.5
    assert "the rig itself stood still for" in stderr
    assert (found["requests"]["lost"], found["requests"]["error"]) == (0, 0)
    assert found["requests"]["completed" if kept == "completed" else "void"] == 2
    assert rig.returncode == (0 if kept == "completed" else 3)
