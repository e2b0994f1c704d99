"""`rig init --target openai URL…`: an inventory of servers that run, each a node on this machine."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, cast
from urllib.parse import urlsplit

import httpx

from rig.errors import UsageError
from rig.load.addresses import LOOPBACK
from rig.targets.openai.api import HEALTH
from rig.targets.surveying import Survey, Surveying

TIMEOUT_S: Final = 5.0


def survey(places: list[str], key: Path | None, name: str) -> Survey:
    """Raises UsageError for what is no URL."""
    urls = [_checked(place) for place in places]
    models: dict[str, list[str]] = {}
    lost: list[str] = []
    for url in urls:
        try:
            models[url] = _models(url)
        except httpx.HTTPError as error:
            lost.append(f"{url}: {error or type(error).__name__}")
    return Survey(
        yaml=render(models, name, key, datetime.now(UTC)),
        reached=len(models),
        unknown=[f"{url}: how it is started is not known; crash faults are refused without `start`" for url in models],
        lost=lost,
    )


def _checked(place: str) -> str:
    url = urlsplit(place if "://" in place else f"http://{place}")
    if url.scheme not in {"http", "https"} or not url.hostname or url.path.strip("/") not in {"", "v1"}:
        raise UsageError(f"expected http://HOST:PORT, not {place!r}")
    return f"{url.scheme}://{url.netloc}"


def _models(url: str) -> list[str]:
    """Those that it lists; none when it does not say. Raises HTTPError where nothing answers."""
    with httpx.Client(timeout=TIMEOUT_S, trust_env=False) as client:
        client.get(f"{url}{HEALTH.name}")
        try:
            listed: Any = client.get(f"{url}/v1/models").raise_for_status().json()
        except (httpx.HTTPError, ValueError):
            return []
    rows = cast("dict[str, Any]", listed).get("data") if isinstance(listed, dict) else None
    found = cast("list[Any]", rows) if isinstance(rows, list) else []
    return [str(cast("dict[str, Any]", row).get("id")) for row in found if isinstance(row, dict)]


def render(models: dict[str, list[str]], name: str, key: Path | None, when: datetime) -> str:
    """The YAML. Pure; every value is written as a JSON string, which is YAML."""
    lines = [
        f"# Written by `rig init --target openai` on {when:%Y-%m-%d %H:%M} UTC. Each node is one server.",
        "# Fill in what follows `?`, then `rig doctor --inventory THIS-FILE`.",
        "# Servers on one machine need a `rig_dir` and a `home` each.",
        f"name: {json.dumps(re.sub(r'[^A-Za-z0-9._-]', '-', name) or 'servers')}",
        "target: openai",
        "nodes:",
    ]
    for number, (url, ids) in enumerate(models.items(), start=1):
        place = urlsplit(url)
        host = place.hostname or ""
        folder = f"/var/tmp/rig-server-{number}"
        lines += [
            "",
            f"  server-{number}: # serves {' '.join(', '.join(ids).split())[:200] or 'models that it does not list'}",
        ]
        if host in LOOPBACK:
            lines.append("    local: true # on this machine, without SSH")
        else:
            lines += ["    ssh:", f"      host: {json.dumps(host)}"]
            lines += [] if key is None else [f"      key: {json.dumps(str(key))}"]
            lines += ["    addresses: [] # ? at which it can be reached; without them it cannot be cut off"]
        port = place.port or (443 if place.scheme == "https" else 80)
        lines += [
            f"    api: {json.dumps(url)}",
            f"    rig_dir: {folder}/rig",
            "    sudo: false # true: packet filters go through `sudo -n`",
            "    server:",
            f"      home: {folder}",
            f"      pidfile: {folder}/server.pid # ? holds the pid of the server",
            "      # ? its command line must contain this (extended regular expression)",
            f'      match: "--port[ =]{port}( |$)"',
            "      # ? how it is started, in the background, its pid in `pidfile`; without it crash faults are refused",
            f"      # start: mlx_lm.server --port {port} >{folder}/server.log 2>&1 & echo $! >{folder}/server.pid",
        ]
    return "\n".join(lines) + "\n"


INIT: Final = Surveying(survey)
