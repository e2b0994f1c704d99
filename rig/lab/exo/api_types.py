"""What the API of a node is asked and what it answers, apart from HTTP itself."""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import Any


@dataclass(frozen=True, slots=True)
class ChatRequest:
    model: str
    streamed: bool
    prompt_tokens: int = 1
    max_tokens: int = 32
    prompt_hash: int = 0  # of all messages: what is answered follows from it


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole JSON answer."""

    status: int
    body: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Accepted:
    """A chat request was taken: answer 200 with headers at once; `StreamToken` … `EndStream` with this id follow.

    The id is also the response id that the client sees.
    """

    command_id: str


def failure(status: int, message: str) -> Reply:
    """An error as exo words it, e.g. 404 → type "Not Found"."""
    kind = HTTPStatus(status).phrase
    return Reply(status, {"error": {"message": message, "type": kind, "param": None, "code": status}})
