"""What a client must make of what it saw. Pure: one function from observation to outcome.

| outcome | when |
|---|---|
| completed | a finish reason of a whole answer arrived, whatever followed it (`unclean_end` says what) |
| error | the client was told: status not 2xx, an error event or error object, a finish reason that gives the request
          up, words instead of an answer, no connection, a connection broken inside the body, an answer that cannot
          be parsed |
| lost | neither. `hung`: no token for the progress deadline (not streamed: no body by the total deadline); `overdue`:
          the total deadline passed while tokens dripped; `truncated`: a clean end without finish reason or error;
          `empty`: a clean end without a token |

Of finish reason, error and garbage the first one decides: a client stops there. `[DONE]` proves nothing. Which finish
reasons and which objects mean what is in `rig.load.told`; all of it is explained in docs/figures.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from rig.journal.records import Cause, How, Outcome

End: TypeAlias = Literal[
    "clean", "broken", "unconnected", "connect-deadline", "unparsable", "progress", "total", "grace"
]
"""How the exchange ended: as HTTP says it should; the connection broke before that; there was none (refused, reset), or
none within the client's own deadline; not HTTP; the client's own progress or total deadline; or the grace after what
had already decided."""


@dataclass(slots=True)
class Heard:
    """What the body said so far, streamed or not."""

    tokens: int = 0  # chunks that bear content
    blanks: int = 0  # chunks that bear none, which may each be a token without text
    usage_tokens: int | None = None
    response_id: str | None = None
    finish_reason: str | None = None  # of a whole answer
    error: str | None = None  # what an error event, or an error instead of an answer, said
    garbage: str | None = None  # the first thing that could not be parsed
    remark: str | None = None  # words instead of an answer; whether they tell of a failure is not known
    late_tokens: int = 0  # those that came after the finish reason
    after: str | None = None  # what was said after the finish reason and should not have been
    done: bool = False  # `[DONE]` was seen
    mixed: str | None = None  # chunks that are not of one answer, in words
    body_bytes: int = 0  # white space around a body that is not streamed does not count


@dataclass(frozen=True, slots=True)
class Judgement:
    outcome: Outcome
    how: How | None = None
    cause: Cause | None = None  # of an error
    reason: str = ""  # in words, for everything not completed
    unclean_end: str | None = None
    damaged: str | None = None


_OK: Final = 200
TOKENS_OF_A_CHARACTER: Final = 4
"""At most: its bytes."""
_UNCLEAN: dict[End, str] = {
    "broken": "the connection broke after the finish reason",
    "unparsable": "what followed the finish reason was not HTTP",
    "unconnected": "the connection broke after the finish reason",  # cannot be: nothing is heard without one
    "connect-deadline": "the connection broke after the finish reason",  # likewise
    "progress": "did not end after the finish reason",
    "total": "did not end after the finish reason",
    "grace": "did not end after the finish reason",
}


def judge(
    *, streamed: bool, status: int | None, heard: Heard, end: End, detail: str = "", token_a_chunk: bool = True
) -> Judgement:
    """`status` is None when no response began. `detail` is the class and message of what ended a broken exchange; of a
    redirect, where to. `token_a_chunk`: a server that streams sends each token in a chunk of its own."""
    told = _told(status, heard, detail)
    if told is not None:
        return told
    if heard.finish_reason is not None:
        unclean = _unclean_end(end, heard, needs_done=streamed and not heard.done)
        return Judgement(
            "completed", unclean_end=unclean, damaged=damage(heard, streamed=streamed, token_a_chunk=token_a_chunk)
        )
    instead = _instead(status, heard) if end == "clean" else None
    if instead is not None:
        return instead
    return _without_answer(streamed=streamed, heard=heard, end=end, detail=detail)


def _error(cause: Cause, reason: str) -> Judgement:
    return Judgement("error", cause=cause, reason=reason)


def _told(status: int | None, heard: Heard, detail: str) -> Judgement | None:
    """How the client was told of a failure."""
    if status is not None and not 200 <= status < 300:
        parts = [f"HTTP status {status}", detail, heard.error or heard.garbage or heard.remark or ""]
        return _error("status", ": ".join(part for part in parts if part))
    if heard.error is not None:
        return _error("message", f"the server said: {heard.error}")
    return None if heard.garbage is None else _error("unparsable", f"cannot be parsed: {heard.garbage}")


def _instead(status: int | None, heard: Heard) -> Judgement | None:
    """What came instead of an answer, of words or of a status that promises none."""
    if heard.remark is not None:
        return _error("remark", f"instead of an answer the server said: {heard.remark}")
    if status not in (None, _OK) and not heard.tokens and not heard.body_bytes:
        return _error("status", f"HTTP status {status} and no answer")
    return None


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
        case "unconnected" | "connect-deadline":
            return _error(end, f"no connection: {detail}")
        case "broken":
            return _error(end, f"the connection broke: {detail}")
        case "unparsable":
            return _error(end, f"not HTTP: {detail}")
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
    return Judgement("lost", how, reason=reason)


def _unclean_end(end: End, heard: Heard, *, needs_done: bool) -> str | None:
    """What followed the finish reason and should not have, or did not and should have."""
    if heard.after is not None:
        return f"after the finish reason the server said: {heard.after}"
    if heard.late_tokens:
        return f"{heard.late_tokens} tokens came after the finish reason"
    if end == "clean":
        return "ended without [DONE]" if needs_done else None
    return _UNCLEAN[end]


def damage(heard: Heard, *, streamed: bool, token_a_chunk: bool) -> str | None:
    """A token count that cannot be the server's `usage`.

    A token may have no text of its own (part of a character). With a token a chunk, a chunk without content counts for
    none or one: sound is tokens ≤ usage ≤ tokens + blanks, and where tokens are claimed there is content at all. A
    whole body has no chunks to count: only the latter is asked of it. Another streaming server may hold back the bytes
    of an unfinished character, and all that it sends may be that.
    """
    usage = heard.usage_tokens
    if usage is None:
        return None
    counted = streamed and token_a_chunk
    held_back = TOKENS_OF_A_CHARACTER if streamed and not counted else 0
    if not heard.tokens and usage > held_back:
        return f"no content arrived, usage says {usage} tokens"
    if not counted or heard.tokens <= usage <= heard.tokens + heard.blanks:
        return None
    return f"{heard.tokens} tokens and {heard.blanks} chunks without text arrived, usage says {usage}"
