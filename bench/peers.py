"""Other load tools against the same mock server in the same run: how wrong their times are, and what they cost.

    python -m bench.peers [--clients 12] [--seconds 8] [--tools FOLDER] [--install] [--json FILE]

The tools are no requirements of the rig: each has a virtual environment of its own under FOLDER (~/.cache/rig-bench),
which `--install` makes. One that is not there is left out, and said to be. Errors are the tool's reported percentile
minus the one of the server's own stamps, at a true TTFT of 50 ms and gaps of 10 ms; events a CPU-second (of the tool
and its processes, start included) are of answers without gaps. Trust ratios: they are to the rig's row of the same run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from bench.load_engine import Mock, mock_server, percentile
from bench.table import conclude
from rig.journal.records import RequestEnded
from rig.journal.write import journal_name

EVENTS: Final = 64
HOME: Final = Path.home() / ".cache" / "rig-bench"
REQUESTS_A_CLIENT: Final = 1.35  # a second, with gaps: a request takes about 0.7 s

QUICK_REQUESTS: Final = 4000  # without gaps

LOCUSTFILE: Final = """
import json, os, time
from locust import HttpUser, constant, events, task

TIMES = []

class Chat(HttpUser):
    wait_time = constant(0)

    @task
    def chat(self):
        body = {"model": "mock", "messages": [{"role": "user", "content": "hi"}], "stream": True, "max_tokens": 64}
        begun, first, last, tokens = time.monotonic(), None, None, 0
        with self.client.post("/v1/chat/completions", json=body, stream=True, catch_response=True) as response:
            for line in response.iter_lines():
                if line.startswith(b"data: {"):
                    choices = json.loads(line[6:])["choices"]
                    if choices and choices[0]["delta"].get("content"):
                        last = time.monotonic()
                        first = first or last
                        tokens += 1
            response.success()
        if first is not None and tokens > 1:
            TIMES.append((first - begun, (last - first) / (tokens - 1)))

@events.quitting.add_listener
def write(environment, **_):
    with open(os.environ["PEER_TIMES"], "w") as file:
        json.dump(TIMES, file)
"""


@dataclass(frozen=True)
class Job:
    url: str
    clients: int
    seconds: float
    requests: int
    folder: Path


@dataclass(frozen=True)
class Tool:
    """`times` gives (TTFT, ITL) in seconds of each request, from what the command left in the folder."""

    name: str
    command: Callable[[Job, Path], list[str]]
    times: Callable[[Path], list[tuple[float, float]]]


def _rig(job: Job, _: Path) -> list[str]:
    return [
        sys.executable, "-m", "rig", "load", "--url", job.url, "-m", "mock", "-c", str(job.clients),
        "-n", str(job.requests), "--max-tokens", str(EVENTS), "--out", str(job.folder), "--json",
    ]  # fmt: skip


def _rig_times(folder: Path) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    decode = msgspec.json.Decoder(RequestEnded).decode
    for line in (folder / journal_name(0)).read_bytes().splitlines():
        if line.startswith(b'{"kind":"request_end"'):
            end = decode(line)
            if end.first_token_t is not None and end.last_token_t is not None:
                itl_s = (end.last_token_t - end.first_token_t) / (EVENTS - 1)
                found.append((end.first_token_t - end.started_t, itl_s))
    return found


def _locust(job: Job, binaries: Path) -> list[str]:
    (job.folder / "locustfile.py").write_text(LOCUSTFILE)
    return [
        str(binaries / "locust"), "-f", str(job.folder / "locustfile.py"), "--headless", "--only-summary",
        "-u", str(job.clients), "-r", str(job.clients), "-t", f"{job.seconds:g}s", "--host", job.url,
    ]  # fmt: skip


def _locust_times(folder: Path) -> list[tuple[float, float]]:
    return [(ttft_s, itl_s) for ttft_s, itl_s in json.loads((folder / "times.json").read_text())]


VOCABULARY: Final[dict[str, Any]] = {
    "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None, "decoder": None,
    "pre_tokenizer": {"type": "Whitespace"}, "post_processor": None,
    "model": {"type": "WordLevel", "vocab": {"[UNK]": 0, "hi": 1, "tok": 2}, "unk_token": "[UNK]"},
}  # fmt: skip


def _tokenizer(folder: Path) -> None:
    """aiperf insists on one by name: three words, laid out as its cache would be, so that nothing is downloaded."""
    model = folder / "hub" / "models--peer--words"
    snapshot = model / "snapshots" / "1"
    for place in (model / "refs", snapshot):
        place.mkdir(parents=True)
    (model / "refs" / "main").write_text("1")
    (snapshot / "tokenizer.json").write_text(json.dumps(VOCABULARY))
    described = {"tokenizer_class": "PreTrainedTokenizerFast", "unk_token": "[UNK]"}
    (snapshot / "tokenizer_config.json").write_text(json.dumps(described))
    (snapshot / "config.json").write_text('{"model_type": "gpt2"}')


def _aiperf(job: Job, binaries: Path) -> list[str]:
    _tokenizer(job.folder)
    prompts = job.folder / "prompts.jsonl"
    prompts.write_text('{"text": "hi"}\n' * 10)
    return [
        str(binaries / "aiperf"), "profile", "--model", "mock", "--url", job.url, "--endpoint-type", "chat",
        "--streaming", "--concurrency", str(job.clients), "--request-count", str(job.requests),
        "--tokenizer", "peer/words", "--use-server-token-count", "--input-file", str(prompts),
        "--custom-dataset-type", "single_turn", "--artifact-dir", str(job.folder), "--ui", "none",
    ]  # fmt: skip


def _aiperf_times(folder: Path) -> list[tuple[float, float]]:
    found: list[tuple[float, float]] = []
    for path in folder.rglob("profile_export.jsonl"):
        for line in path.read_bytes().splitlines():
            metrics = json.loads(line).get("metrics", {})
            ttft, itl = (metrics.get(name) for name in ("time_to_first_token", "inter_token_latency"))
            if ttft and itl:
                found.append((ttft["value"] / 1000, itl["value"] / 1000))
    return found


TOOLS: Final = (
    Tool("rig", _rig, _rig_times),
    Tool("locust", _locust, _locust_times),
    Tool("aiperf", _aiperf, _aiperf_times),
)


def _once(tool: Tool, binary: Path, job: Job, binaries: Path, options: Sequence[str]) -> tuple[Any, list[Any], float]:
    """The tool's times, the server's, and the tool's CPU seconds. Raises RuntimeError with its last words."""
    mock = Mock(binary, "--usage", *options)
    job.folder.mkdir()
    job = replace(job, url=mock.url)
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(
        tool.command(job, binaries),
        env={
            **os.environ,
            "PEER_TIMES": str(job.folder / "times.json"),
            "HF_HOME": str(job.folder),
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=job.seconds * 10 + 120,
        cwd=job.folder,
    )
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    true = mock.stop()  # only now: the server is a child as well, and its CPU not the tool's
    times = tool.times(job.folder)
    if not times:
        raise RuntimeError(f"{tool.name}: no times; {(done.stderr or done.stdout).strip()[-300:]}")
    return times, true, cpu_s


def measured(tool: Tool, binary: Path, clients: int, seconds: float, folder: Path, binaries: Path) -> dict[str, Any]:
    paced = max(clients, int(clients * seconds * REQUESTS_A_CLIENT))
    exact = Job("", clients, seconds, paced, folder / f"{tool.name}-{clients}-exact")
    quick = Job("", clients, seconds, QUICK_REQUESTS, folder / f"{tool.name}-{clients}-quick")
    times, true, _ = _once(tool, binary, exact, binaries, ("--ttft", "50", "--itl", "10"))
    row: dict[str, Any] = {"tool": tool.name, "clients": clients, "requests": len(times)}
    for at, name in enumerate(("ttft", "itl")):
        for share, label in ((0.5, "p50"), (0.99, "p99")):
            error_s = percentile([one[at] for one in times], share) - percentile([one[at] for one in true], share)
            row[f"{name}_{label}_error_ms"] = round(error_s * 1000, 2)
    times, true, cpu_s = _once(tool, binary, quick, binaries, ())
    return row | {"events_per_cpu_s": round(len(true) * (EVENTS + 1) / cpu_s)}


def _install(tool: str, folder: Path) -> None:
    place = folder / tool
    subprocess.run([sys.executable, "-m", "venv", str(place)], check=True)
    subprocess.run([str(place / "bin" / "pip"), "install", "--quiet", tool], check=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, nargs="+", default=[12, 100])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--tools", type=Path, default=HOME)
    parser.add_argument("--install", action="store_true")
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    rows: list[dict[str, Any]] = []
    with mock_server() as binary, tempfile.TemporaryDirectory(prefix="rig-bench-") as name:
        for tool in TOOLS:
            binaries = given.tools / tool.name / "bin"
            if tool.name != "rig" and not (binaries / tool.name).exists():
                if not given.install:
                    print(f"{tool.name} is not installed: python -m bench.peers --install", file=sys.stderr)
                    continue
                _install(tool.name, given.tools)
            for clients in given.clients:
                try:
                    rows.append(measured(tool, binary, clients, given.seconds, Path(name), binaries))
                except (RuntimeError, subprocess.TimeoutExpired) as error:
                    print(f"{tool.name} with {clients} clients: {error}", file=sys.stderr)
    ours = {row["clients"]: row["events_per_cpu_s"] for row in rows if row["tool"] == "rig"}
    for row in rows:
        row["of_rig"] = round(row["events_per_cpu_s"] / ours[row["clients"]], 2) if row["clients"] in ours else None
    return conclude("Peers on the same server", rows, given.json)


if __name__ == "__main__":
    sys.exit(main())
