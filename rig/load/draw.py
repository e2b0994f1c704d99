"""What the next request of a client is: model, length, streamed or not, prompt. Drawn from a seed; pure."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final

import httpx

from rig.config.workload import Lengths, Workload
from rig.errors import UsageError
from rig.load.canary import MAX_TOKENS, Asked, Canary
from rig.load.prompts import prompt

_TRIES: Final = 100
_PATH = "/v1/chat/completions"


@dataclass(frozen=True, slots=True)
class Drawn:
    model: str
    streamed: bool
    prompt: str
    prompt_tokens: int
    max_tokens: int
    canary: Canary | None = None


class Draw:
    """The sequence of requests of one client: the same for the same workload, seed and client name."""

    def __init__(
        self, workload: Workload, seed: int, client: str, pairs: Sequence[tuple[int, int]] | None = None
    ) -> None:
        self._workload = workload
        self._pairs = pairs
        self._seed = seed
        self._models = [model.model for model in workload.models]
        self._weights = [model.weight for model in workload.models]
        self.rng = Random(f"{seed}/{client}")
        self.canary_rng = Random(f"{seed}/{client}/canaries")  # apart: with and without canaries the rest is the same

    def next(
        self, prompt_tokens: int | None = None, output_tokens: int | None = None, blocks: Sequence[str] = ()
    ) -> Drawn:
        """Lengths that are given are used as they are. Prompts begin alike as far as their `blocks` do."""
        rng, workload = self.rng, self._workload
        if self._pairs and prompt_tokens is None and output_tokens is None:
            prompt_tokens, output_tokens = rng.choice(self._pairs)
        if prompt_tokens is None:
            prompt_tokens = length(workload.prompt_tokens, rng)
        return Drawn(
            model=rng.choices(self._models, self._weights)[0],
            streamed=rng.random() < workload.streamed_share,
            prompt=prompt(rng, prompt_tokens, [f"{self._seed}/{block}" for block in blocks]),
            prompt_tokens=prompt_tokens,
            max_tokens=length(workload.output_tokens, rng) if output_tokens is None else output_tokens,
        )


def drawn_canary(asked: Asked) -> Drawn:
    prompt = asked.canary.prompt
    return Drawn(asked.model, asked.streamed, prompt, len(prompt.split()), MAX_TOKENS, asked.canary)


def length(lengths: Lengths, rng: Random) -> int:
    """One count of tokens from the distribution, within its range."""
    low, high = lengths.low, lengths.high
    if lengths.shape == "uniform" or low == high:
        return rng.randint(low, high)
    mean = (low + high) / 2 if lengths.mean is None else lengths.mean
    deviation = (high - low) / 4 if lengths.deviation is None else lengths.deviation
    for _ in range(_TRIES):
        drawn = round(rng.gauss(mean, deviation) if lengths.shape == "normal" else _lognormal(mean, deviation, rng))
        if low <= drawn <= high:
            return drawn
    return min(max(round(mean), low), high)  # hardly any of this distribution lies within the range


def _lognormal(mean: float, deviation: float, rng: Random) -> float:
    """Mean and deviation are of the values, not of their logarithms."""
    variance = math.log1p((deviation / mean) ** 2)
    return rng.lognormvariate(math.log(mean) - variance / 2, math.sqrt(variance))


def completions_url(base: str) -> httpx.URL:
    """From an API's address (`http://host:8000`, with or without `/v1` or the whole path). Raises UsageError."""
    try:
        url = httpx.URL(base)
    except httpx.InvalidURL as error:
        raise UsageError(f"{base!r} is not a URL: {error}", remedy="give one such as http://studio-1:8000") from error
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f"{base!r} is not an http URL with a host", remedy="give one such as http://studio-1:8000")
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
