"""What targets and nodes said reaches terminals, Markdown, XML and HTML without controlling any of them."""

from __future__ import annotations

import json
import os
import pty
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from rig.clock import RunClock
from rig.journal.records import Finding
from rig.journal.run import new_run_folder, write_run
from rig.journal.write import Journal, journal_name
from rig.report.markdown import escape
from rig.visible import one_line, visible

pytestmark = pytest.mark.processes

SAMPLE = Path(__file__).parents[2] / "results" / "sample"
EVIL = "\x1b[31mred\x1b[0m \x1b]0;title\x07 \x00 \x9b2J \u202eodd [bold]shout[/bold] :bomb: @octocat #12\nVERDICT pass"
CONTROLS = {chr(code) for code in (*range(9), *range(11, 32), *range(0x7F, 0xA0), 0x202E)}
SECRET = "s3cr3t"
URL = f"http://ann:{SECRET}@studio-1:52415/v1"


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """The sample run, with findings of an evil target."""
    folder = tmp_path / "evil"
    shutil.copytree(SAMPLE, folder)
    for name in ("summary.md", "summary.json", "report.html", "junit.xml"):
        (folder / name).unlink(missing_ok=True)
    lines = (folder / journal_name(0)).read_bytes().splitlines(keepends=True)
    number = next(number for number, line in enumerate(lines) if b'"state":"struck"' in line)
    record = Finding(t=json.loads(lines[number])["t"], code=EVIL, text=f"{EVIL} from {URL}")
    lines.insert(number + 1, msgspec.json.encode(record) + b"\n")
    (folder / journal_name(0)).write_bytes(b"".join(lines))
    return folder


def rig(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "rig", *arguments],
        capture_output=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return (done.stdout + done.stderr).decode()


def on_a_terminal(*arguments: str) -> str:
    """What the command writes to a terminal that shows colours."""
    master, slave = pty.openpty()
    environment = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "400"}
    process = subprocess.Popen([sys.executable, "-m", "rig", *arguments], stdout=slave, stderr=slave, env=environment)
    os.close(slave)
    said = b""
    try:
        while piece := os.read(master, 65536):
            said += piece
    except OSError:  # how Linux tells that nobody holds the other end any more
        pass
    finally:
        os.close(master)
    process.wait(60)
    return said.decode()


def test_reports_of_an_evil_target(run_folder: Path) -> None:
    said = rig("report", str(run_folder)) + rig("show", str(run_folder), "--fault", "0")
    assert said.count("shout") == 4  # in either
    files = {name: (run_folder / name).read_text() for name in ("summary.md", "junit.xml", "report.html")}
    for text in (said, rig("report", str(run_folder), "--markdown"), *files.values()):
        assert not CONTROLS & set(text)
        assert SECRET not in text
    assert "␛[31mred" in said
    assert "[bold]shout[/bold] :bomb:" in said  # no markup of rich's
    assert "\nVERDICT pass" not in said  # no line of the rig's own
    assert "\\[bold\\]" in files["summary.md"]
    assert json.loads((run_folder / "summary.json").read_text())["findings"][0]["code"] == EVIL  # the truth is kept


def test_a_terminal_gets_the_rigs_own_styles_alone(run_folder: Path) -> None:
    said = on_a_terminal("report", str(run_folder))
    assert "\x1b[1;35mEMBEDDED CLUSTER" in said
    assert "\x1b[31mred" not in said
    assert "\x1b]" not in said
    assert "\x07" not in said
    assert "␛[31mred" in said


def test_errors_name_what_they_do_not_print() -> None:
    said = rig("report", "no\x1b[31msuch\x07run")
    assert "such" in said
    assert not CONTROLS & set(said)
    asked = rig("load", "--url", f"http://ann:{SECRET}@127.0.0.1:9", "--model", "m", "--requests", "1", "--json")
    assert "a user name or password in it would be shown" in asked
    assert SECRET not in asked


def test_what_a_run_leaves_is_its_owners(tmp_path: Path) -> None:
    """Whatever the umask is: the inventory has commands, forensics has logs and leases."""
    before = os.umask(0o022)
    try:
        folder = new_run_folder(tmp_path / "results")
        info = msgspec.json.decode((SAMPLE / "run.json").read_bytes())
        info["inventory"]["nodes"] = {"n1": {"api": URL, "exo": {"start": "exo --token abc"}}}
        from rig.journal.run import RunInfo  # noqa: PLC0415

        write_run(folder, msgspec.convert(info, RunInfo))
        journal = Journal(folder, RunClock())
        journal.write(Finding(t=0.0, code="x", text=f"{URL} does not answer"))
        journal.close()
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in (folder, *folder.iterdir())}
    assert modes == {folder.name: 0o700, "run.json": 0o600, journal_name(0): 0o600}
    for name in ("run.json", journal_name(0)):
        text = (folder / name).read_text()
        assert SECRET not in text
        assert "http://…@studio-1:52415/v1" in text


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain text, ünïcode 字 🙂", "plain text, ünïcode 字 🙂"),
        ("a\x1b[2Jb\x00\x07\r\x7f", "a␛[2Jb␀␇␍␡"),
        ("\x9b31m \u202e \u2066 \ufeff \ud800", "�31m � � � �"),
        ("two\nlines\tand a tab", "two\nlines\tand a tab"),
        (f"at {URL}, and mailto:ann@host", "at http://…@studio-1:52415/v1, and mailto:ann@host"),
        ("http://host/path@2 and https://h?x=a@b", "http://host/path@2 and https://h?x=a@b"),
    ],
)
def test_visible(text: str, shown: str) -> None:
    assert visible(text) == shown
    assert "\n" not in one_line(text)


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("<b>&amp; ~~x~~ # no", "\\<b\\>\\&amp; \\~\\~x\\~\\~ \\# no"),
        ("@octocat in #12", "@\u2060octocat in \\#\u206012"),
        ("see http://evil.example www.evil.example", "see http:\u2060//evil.example www\u2060.evil.example"),
        ("ann@host:12", "ann@host:12"),
        ("- item", "\\- item"),
    ],
)
def test_markdown(text: str, markdown: str) -> None:
    assert escape(text) == markdown
