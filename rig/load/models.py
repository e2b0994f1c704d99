"""Which models a server offers, asked the way every OpenAI-compatible server answers: `/v1/models`."""

from __future__ import annotations

import time
from typing import Final

import httpx
import msgspec

from rig.errors import TargetError, TargetMisread, TargetUnreachable, UsageError
from rig.load.access import Access
from rig.load.draw import completions_url
from rig.load.transport import LoadTransport

_WITHIN_S: Final = 10.0
_MOST_SHOWN: Final = 10


class _Model(msgspec.Struct):
    id: str


class _Models(msgspec.Struct):
    data: list[_Model]


async def models_of(url: str, access: Access) -> list[str]:
    """Raises UsageError, TargetError."""
    chat = completions_url(url)
    asked = chat.copy_with(path=chat.path.removesuffix("/chat/completions") + "/models")
    try:
        async with httpx.AsyncClient(transport=LoadTransport(time.monotonic, access), timeout=_WITHIN_S) as client:
            response = await client.get(asked)
    except httpx.TransportError as error:
        raise TargetUnreachable(
            f"{asked}: {error}", remedy="name the model with --model, or start the server"
        ) from error
    if response.status_code in (401, 403):
        raise TargetError(
            f"{asked}: HTTP {response.status_code}: the server wants a key, or another one",
            remedy="give it in the environment as OPENAI_API_KEY, or with --api-key",
        )
    if response.status_code != 200:
        raise TargetMisread(f"{asked}: HTTP {response.status_code}", remedy="name the model with --model")
    try:
        return [model.id for model in msgspec.json.decode(response.content, type=_Models).data]
    except msgspec.DecodeError as error:
        raise TargetMisread(f"{asked}: no list of models: {error}", remedy="name the model with --model") from error


def only_model(models: list[str], url: str) -> str:
    """The one to load. Raises UsageError where that is not clear."""
    if len(models) == 1:
        return models[0]
    if not models:
        raise UsageError(f"{url} offers no model", remedy="name one with --model")
    more = f" and {len(models) - _MOST_SHOWN} more" if len(models) > _MOST_SHOWN else ""
    raise UsageError(
        f"{url} offers {len(models)} models: {', '.join(models[:_MOST_SHOWN])}{more}", remedy="name one with --model"
    )
