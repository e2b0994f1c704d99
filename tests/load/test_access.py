"""`rig load` against a TLS server that wants a key: what gets in, what does not, and where the key is then: nowhere."""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import ssl
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from rig.errors import UsageError
from rig.load.access import Access
from tests.load.servers import SOUND, whole

KEY: Final = "sk-right/0123456789abcdef"
_answers = itertools.count()
WRONG: Final = "sk-wrong/fedcba9876543210"


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tls")
    made = folder / "cert.pem"
    subprocess.run(
        [
            *("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"),
            *("-keyout", str(folder / "key.pem"), "-out", str(made)),
        ],
        check=True,
        capture_output=True,
    )
    return made


async def _serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Repeats the key it does not accept, as OpenAI's own API does; so often that any cut goes through it."""
    lines = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
    head = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    await reader.readexactly(int(head.get("content-length", "0")))
    key = head.get("authorization", "").removeprefix("Bearer ") or head.get("x-api-key", "")
    if key != KEY:
        said = json.dumps(
            {"error": {"message": f"Incorrect API key provided: {key * 60}" + "x" * next(_answers)}}
        ).encode()
        answer = whole(said).replace(b"200 OK", b"401 Unauthorized")
    elif lines[0].startswith("GET /v1/models "):
        answer = whole(b'{"object":"list","data":[{"id":"served"}]}')
    else:
        answer = SOUND
    writer.write(answer)
    await writer.drain()
    writer.close()


@pytest.fixture
def keyed(certificate: Path) -> Iterator[str]:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, certificate.with_name("key.pem"))
    loop, ports, stop = asyncio.new_event_loop(), list[int](), asyncio.Event()
    ready = threading.Event()

    async def serve() -> None:
        server = await asyncio.start_server(_serve_one, "127.0.0.1", 0, ssl=tls)
        ports.append(server.sockets[0].getsockname()[1])
        ready.set()
        await stop.wait()
        server.close()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),))
    thread.start()
    assert ready.wait(20)
    yield f"https://127.0.0.1:{ports[0]}"
    loop.call_soon_threadsafe(stop.set)
    thread.join()
    loop.close()


def load(url: str, *arguments: str, cwd: Path, key: str | None = None) -> tuple[int, str, str]:
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    environment |= {} if key is None else {"OPENAI_API_KEY": key}
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "rig",
            "load",
            "--url",
            url,
            "-n",
            "6",
            "-c",
            "2",
            "--json",
            "--out",
            "kept",
            *arguments,
        ],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        cwd=cwd,
        env=environment,
    )
    written = b"".join(path.read_bytes() for path in cwd.rglob("*") if path.is_file()).decode()
    for secret in (KEY, WRONG):
        for part in (secret[at : at + 8] for at in range(len(secret) - 7)):
            assert part not in done.stdout + done.stderr + written
    return done.returncode, done.stdout, done.stderr


def test_the_key_of_the_environment_and_the_model_that_is_served(keyed: str, certificate: Path, tmp_path: Path) -> None:
    code, stdout, stderr = load(keyed, "--cacert", str(certificate), cwd=tmp_path, key=KEY)
    assert code == 0, stderr
    result: dict[str, Any] = json.loads(stdout)
    assert (result["model"], result["requests"]["completed"]) == ("served", 6)


@pytest.mark.parametrize(
    "arguments",
    [("--api-key", KEY), ("--header", f"Authorization: Bearer {KEY}"), ("-H", f"X-Api-Key: {KEY}")],
)
def test_a_key_of_the_command_line(keyed: str, tmp_path: Path, arguments: tuple[str, str]) -> None:
    key = None if arguments[0] == "-H" else WRONG  # what the command line says is before what the environment does
    code, _, stderr = load(keyed, "--insecure", "--model", "served", *arguments, cwd=tmp_path, key=key)
    assert code == 0, stderr


def test_a_wrong_key_is_an_error_of_each_request_and_is_shown_nowhere(keyed: str, tmp_path: Path) -> None:
    code, stdout, _ = load(keyed, "--insecure", "--model", "served", "-n", "25", cwd=tmp_path, key=WRONG)
    result: dict[str, Any] = json.loads(stdout)
    assert (code, result["requests"]["error"], result["requests"]["void"]) == (1, 25, 0)
    assert "401" in next(iter(result["reasons"]))
    assert "*" * len(WRONG) in (tmp_path / "kept" / "journal.jsonl").read_text()


def test_a_key_of_the_environment_does_not_leave_the_machine_unencrypted(tmp_path: Path) -> None:
    code, _, stderr = load("http://192.0.2.1:8000", "--model", "m", cwd=tmp_path, key=WRONG)
    assert (code, "OPENAI_API_KEY would go to 192.0.2.1 unencrypted" in stderr, WRONG in stderr) == (2, True, False)


def test_a_wrong_key_where_the_model_is_asked_for(keyed: str, tmp_path: Path) -> None:
    code, stdout, stderr = load(keyed, "--insecure", cwd=tmp_path, key=WRONG)
    assert (code, stdout) == (3, "")
    assert "OPENAI_API_KEY" in stderr
    assert "Traceback" not in stderr


def test_a_certificate_that_nobody_trusts(keyed: str, tmp_path: Path) -> None:
    code, stdout, _ = load(keyed, "--model", "served", cwd=tmp_path, key=KEY)
    assert code == 1
    assert "certificate verify failed" in next(iter(json.loads(stdout)["reasons"]))


@pytest.mark.parametrize(
    "access",
    [
        {"api_key": "sk secret"},
        {"headers": ["secret"]},
        {"headers": ["A: secret\r\nB: c"]},
        {"headers": ["Host: secret"]},
    ],
)
def test_what_cannot_be_sent_is_not_repeated(access: dict[str, Any]) -> None:
    with pytest.raises(UsageError) as raised:
        Access(**access)
    assert "secret" not in str(raised.value)
