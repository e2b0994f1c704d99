"""What a client must make of what it saw. Pure: one function from observation to outcome.

| outcome | when |
|---|---|
| completed | a finish reason other than error arrived, whatever followed it (`unclean_end` says what) |
| error | the client was told: status not 2xx, an error event or error finish reason, no connection, a connection broken
          inside the body, an answer that cannot be parsed |
| lost | neither. `hung`: no token for the progress deadline (not streamed: no body by the total deadline); `overdue`:
          the total deadline passed while tokens dripped; `truncated`: a clean end without finish reason or error;
          `empty`: a clean end without a token |

Of finish reason, error and garbage the first one decides: a client stops there. `[DONE]` proves nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from rig.journal.records import How, Outcome

End: TypeAlias = Literal["clean", "broken", "unconnected", "unparsable", "progress", "total", "grace"]
"""How the exchange ended: as HTTP says it should; the connection broke before that; there was none (refused, reset, not
in time); not HTTP; the client's own progress or total deadline; or the grace after what had already decided."""


@dataclass(slots=True)
class Heard:
    """What the body said so far, streamed or not."""

    tokens: int = 0  # chunks that bear content
    blanks: int = 0  # chunks that bear none, which may each be a token without text
    usage_tokens: int | None = None
    response_id: str | None = None
    finish_reason: str | None = None
    error: str | None = None  # what an error event, or an error instead of an answer, said
    garbage: str | None = None  # the first thing that could not be parsed
    done: bool = False  # `[DONE]` was seen
    body_bytes: int = 0  # white space around a body that is not streamed does not count


@dataclass(frozen=True, slots=True)
class Judgement:
    outcome: Outcome
    how: How | None = None
    reason: str = ""  # in words, for everything not completed
    unclean_end: str | None = None
    damaged: str | None = None


_UNCLEAN: dict[End, str] = {
    "broken": "the connection broke after the finish reason",
    "unparsable": "what followed the finish reason was not HTTP",
    "unconnected": "the connection broke after the finish reason",  # cannot be: nothing is heard without one
    "progress": "did not end after the finish reason",
    "total": "did not end after the finish reason",
    "grace": "did not end after the finish reason",
}


def judge(*, streamed: bool, status: int | None, heard: Heard, end: End, detail: str = "") -> Judgement:
    """`status` is None when no response began. `detail` is the class and message of what ended a broken exchange."""
    if status is not None and not 200 <= status < 300:
        return Judgement("error", reason=f"HTTP status {status}")
    if heard.error is not None:
        return Judgement("error", reason=f"the server said: {heard.error}")
    if heard.garbage is not None:
        return Judgement("error", reason=f"cannot be parsed: {heard.garbage}")
    if heard.finish_reason is not None:
        damaged = damage(heard) if streamed else None
        return Judgement(
            "completed", unclean_end=_unclean_end(end, needs_done=streamed and not heard.done), damaged=damaged
        )
    return _without_answer(streamed=streamed, heard=heard, end=end, detail=detail)


def decided(status: int | None, heard: Heard) -> bool:
    """Nothing that can still come changes the outcome."""
    return (
        heard.finish_reason is not None
        or heard.error is not None
        or heard.garbage is not None
        or (status is not None and not 200 <= status < 300)
    )


def _without_answer(*, streamed: bool, heard: Heard, end: End, detail: str) -> Judgement:
    """Neither a finish reason nor an error was heard: broken is an error, everything else is lost."""
    how: How
    match end:
        case "unconnected":
            return Judgement("error", reason=f"no connection: {detail}")
        case "broken":
            return Judgement("error", reason=f"the connection broke: {detail}")
        case "unparsable":
            return Judgement("error", reason=f"not HTTP: {detail}")
        case "progress":
            what = "no more tokens came" if heard.tokens else "not one token came"
            how, reason = "hung", f"{what} within the progress deadline"
        case "total" if streamed and heard.tokens:
            how, reason = "overdue", "tokens were still coming at the total deadline"
        case "total" | "grace":
            how, reason = "hung", "no answer by the total deadline"
        case "clean" if heard.tokens or (not streamed and heard.body_bytes):
            how, reason = "truncated", "a clean end without finish reason or error"
        case "clean":
            how, reason = "empty", "a clean end without a token"
    return Judgement("lost", how, reason)


def _unclean_end(end: End, *, needs_done: bool) -> str | None:
    if end == "clean":
        return "ended without [DONE]" if needs_done else None
    return _UNCLEAN[end]


def damage(heard: Heard) -> str | None:
    """A token count that cannot be the server's `usage`, for servers that send one token a chunk, as exo does.

    A token may have no text of its own (part of a character), so a chunk without content counts for none or one:
    sound is tokens ≤ usage ≤ tokens + blanks. Only streams are judged: a whole body has no chunks to count.
    """
    usage = heard.usage_tokens
    if usage is None or heard.tokens <= usage <= heard.tokens + heard.blanks:
        return None
    return f"{heard.tokens} tokens and {heard.blanks} chunks without text arrived, usage says {usage}"
