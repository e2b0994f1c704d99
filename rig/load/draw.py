"""What the next request of a client is: model, length, streamed or not, prompt. Drawn from a seed; pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

import httpx

from rig.config.workload import Workload
from rig.errors import UsageError
from rig.load.prompts import prompt

_PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Drawn:
    model: str
    streamed: bool
    prompt: str
    prompt_tokens: int
    max_tokens: int


class Draw:
    """The sequence of requests of one client: the same for the same workload, seed and client name."""

    def __init__(self, workload: Workload, seed: int, client: str) -> None:
        self._workload = workload
        self._models = [model.model for model in workload.models]
        self._weights = [model.weight for model in workload.models]
        self.rng = Random(f"{seed}/{client}")

    def next(self) -> Drawn:
        rng, workload = self.rng, self._workload
        prompt_tokens = rng.randint(workload.prompt_tokens.low, workload.prompt_tokens.high)
        return Drawn(
            model=rng.choices(self._models, self._weights)[0],
            streamed=rng.random() < workload.streamed_share,
            prompt=prompt(rng, prompt_tokens),
            prompt_tokens=prompt_tokens,
            max_tokens=rng.randint(workload.output_tokens.low, workload.output_tokens.high),
        )


def completions_url(base: str) -> httpx.URL:
    """From an API's address (`http://host:52415`, with or without `/v1` or the whole path). Raises UsageError."""
    try:
        url = httpx.URL(base)
    except httpx.InvalidURL as error:
        raise UsageError(f"{base!r} is not a URL: {error}", remedy="give one such as http://studio-1:52415") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f"{base!r} is not an http URL with a host", remedy="give one such as http://studio-1:52415")
    path = url.path.rstrip("/")
    if path.endswith("/chat/completions"):
        return url.copy_with(path=path)
    return url.copy_with(path=path.removesuffix("/v1") + _PATH)


def entry_urls(workload: Workload, entries: Mapping[str, str]) -> list[tuple[str, httpx.URL]]:
    """The entry nodes the workload uses, with their URLs. Raises UsageError for a name that is not among `entries`."""
    names = list(entries) if workload.entry == "spread" else workload.entry
    unknown = [name for name in names if name not in entries]
    if unknown or not names:
        known = ", ".join(entries) or "none"
        raise UsageError(f"workload {workload.name!r}: entry nodes {unknown} are not known (known: {known})")
    return [(name, completions_url(entries[name])) for name in names]
