"""BSD's ps over this machine's own processes."""

from __future__ import annotations

import os
import subprocess
import time
from datetime import UTC, datetime, timedelta

import psutil
import pytest

from rig.lab.mac.ps import ps


def test_fields_of_one() -> None:
    answer = ps(["-ww", "-o", "pid=", "-o", "ppid=", "-o", "command=", "-p", str(os.getpid())])
    words = answer.out.split()
    assert answer.status == 0
    assert words[:2] == [str(os.getpid()), str(os.getppid())]
    assert words[2] == psutil.Process().cmdline()[0]


def test_header_and_width() -> None:
    everybody = ps(["ax"]).out.splitlines()
    assert everybody[0].split() == ["PID", "TTY", "TIME", "COMMAND"]
    assert max(map(len, everybody)) <= 79
    mine = [line for line in ps(["-axww", "-o", "pid,command"]).out.splitlines() if line.split()[0] == str(os.getpid())]
    assert len(mine) == 1


def test_a_line_for_each_whatever_a_command_has_in_it() -> None:
    with subprocess.Popen(["sh", "-c", "read _\n2 x\t\n\n"], stdin=subprocess.PIPE) as child:
        found = ps(["-axww", "-o", "pid,command"]).out.splitlines()[1:]
        assert child.stdin is not None
        child.stdin.close()
    assert all(line.split()[0].isdigit() for line in found)
    assert f"{child.pid} sh -c read _\\0122 x\\011\\012\\012" in [line.strip() for line in found]


def test_start_is_local_time_of_who_asks() -> None:
    """And the zone of who answers stays as it was."""
    arguments = ["-o", "lstart=", "-p", str(os.getpid())]
    here = time.localtime().tm_zone
    told = [
        datetime.strptime(ps(arguments, zone).out.strip(), "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
        for zone in ("UTC0", "EST5", "XYZ-5:30")
    ]
    assert abs(told[0].timestamp() - psutil.Process().create_time()) < 2
    assert [at - told[0] for at in told[1:]] == [timedelta(hours=-5), timedelta(hours=5, minutes=30)]
    assert time.localtime().tm_zone == here


def test_nobody() -> None:
    assert ps(["-o", "pid=", "-p", "4999999"]).status == 1


@pytest.mark.parametrize("arguments", [["--pid", "1"], ["-o", "etimes=", "-p", "1"], ["-p", "x"], ["-Z"], ["-o", ""]])
def test_refused(arguments: list[str]) -> None:
    answer = ps(arguments)
    assert answer.status == 1
    assert answer.err.startswith("ps: ")
    assert answer.out == ""
