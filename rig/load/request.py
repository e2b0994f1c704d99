"""One request to one entry node, from its start line in the journal to its end line.

The start is written before anything is sent; the end is written whatever happened, with one exception: a cancelled
request has no end line, and counts as unfinished. Nothing is tried twice.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import httpx
import msgspec

from rig.journal.records import AnswerMalformed, CanaryAnswered, RequestEnded, RequestStarted
from rig.journal.write import Journal
from rig.load.access import Access
from rig.load.answer import Answer
from rig.load.canary import Canary, Texts, digest_of
from rig.load.deadlines import Limits, Watch
from rig.load.opening import Opening
from rig.load.outcome import End, Heard, Judgement, decided, judge
from rig.load.stream import Reader, StreamReader
from rig.load.transport import ArrivalStream, Exchange, LoadTransport, Marks, NotHttpError, OwnFailureError

EVIDENCE_BYTES: Final = 600
_encode = msgspec.json.Encoder().encode


@dataclass(frozen=True, slots=True)
class Call:
    """A request to be made. `url` is that of the entry node's chat completions."""

    id: str
    source: Literal["load", "probe"]
    client: str
    model: str
    entry: str
    url: httpx.URL
    streamed: bool
    prompt: str
    prompt_tokens: int
    max_tokens: int
    limits: Limits
    planned_t: float
    temperature: float | None = None
    token_a_chunk: bool = True  # whether the server sends each token in a chunk of its own
    canary: Canary | None = None
    alone: bool = False  # nothing else of the load is on its way

    def body(self) -> bytes:
        content: dict[str, Any] = {
            "model": self.model,
            "messages": [{"role": "user", "content": self.prompt}],
            "max_tokens": self.max_tokens,
            "stream": self.streamed,
        }
        if self.streamed:
            content["stream_options"] = {"include_usage": True}
        if self.temperature is not None:
            content["temperature"] = self.temperature
        if self.canary is not None:
            content |= self.canary.fields()
        return _encode(content)


_HEADERS: Final = (
    (b"content-type", b"application/json"),
    (b"accept", b"*/*"),
    (b"accept-encoding", b"identity"),
    (b"connection", b"close"),
    (b"user-agent", b"rig"),
)


async def perform(call: Call, transport: LoadTransport, journal: Journal, texts: Texts | None = None) -> RequestEnded:
    """Make the request, write both its lines, return the second. Of a canary, write what was said as well, as far as
    `texts` does not have it. Raises JournalError; a defect of the rig is written as an error that says so, and raised.
    """
    await transport.turns.take()
    journal.write(
        RequestStarted(
            t=journal.now(),
            id=call.id,
            source=call.source,
            client=call.client,
            model=call.model,
            entry=call.entry,
            planned_t=call.planned_t,
            streamed=call.streamed,
            prompt_tokens=call.prompt_tokens,
            max_tokens=call.max_tokens,
            canary=None if call.canary is None else call.canary.name,
        )
    )
    access = transport.access
    attempt = _Attempt(call, journal.now, access)
    try:
        end, detail = await attempt.run(transport)
    except Exception as error:
        judgement = Judgement("error", cause="defect", reason=f"defect of the rig: {type(error).__name__}: {error}")
        attempt.own_failure = judgement.reason
        journal.write(access.masked_record(attempt.record(judgement, journal.now())))
        raise
    ended = access.masked_record(attempt.record(attempt.judge(end, detail), journal.now()))
    journal.write(ended)
    if ended.outcome == "completed":
        if call.canary is not None and attempt.answer is not None:
            answered = _answered(call, call.canary, attempt.answer, ended, Texts() if texts is None else texts)
            journal.write(access.masked_record(answered))
        if wrong := attempt.malformed(ended):
            malformed = AnswerMalformed(t=journal.now(), id=call.id, model=call.model, entry=call.entry, what=wrong)
            journal.write(access.masked_record(malformed))
    return ended


def _answered(call: Call, canary: Canary, answer: Answer, ended: RequestEnded, texts: Texts) -> CanaryAnswered:
    digest = digest_of(answer.text)
    return CanaryAnswered(
        t=ended.t,
        id=call.id,
        canary=canary.name,
        model=call.model,
        entry=call.entry,
        streamed=call.streamed,
        alone=call.alone,
        started_t=ended.started_t,
        response_id=ended.response_id,
        digest=digest,
        pieces=texts.new((call.model, canary.name, call.streamed), digest, answer.pieces),
    )


class _Attempt:
    """What one request has seen so far."""

    def __init__(self, call: Call, now: Callable[[], float], access: Access) -> None:
        self._call = call
        self._access = access
        self._now = now
        self._started_t = now()
        self._watch = Watch(now, self._started_t, call.limits, streamed=call.streamed)
        self._marks = Marks()
        self.own_failure: str | None = None
        self._status: int | None = None
        self._location = ""  # where a redirect leads
        self._opening = Opening(streamed=call.streamed)
        self._unread = Heard()  # what is known without reading the body
        self._reader: Reader | None = None
        self._tail = b""

    async def run(self, transport: LoadTransport) -> tuple[End, str]:
        """Send and read to the end; how it ended, and by what. Foreign exceptions end here."""
        try:
            async with asyncio.timeout(None) as timeout:
                self._watch.start(timeout)
                response = await transport.handle_async_request(self._request())
                await self._read(response)
            return self._ended("clean")
        except TimeoutError:
            return self._timed_out()
        except httpx.TransportError as error:
            return self._broken(error)
        finally:
            self._watch.stop()

    def _timed_out(self) -> tuple[End, str]:
        if not self._marks.resolved:
            return self._failed(f"no address for {self._call.url.host} in time")
        if self._marks.connected_t is None:
            return self._ended(
                "connect-deadline", f"ConnectTimeout: not connected within {self._call.limits.connect_s} s"
            )
        return self._ended(self._watch.struck)

    def _broken(self, error: httpx.TransportError) -> tuple[End, str]:
        match error:
            case OwnFailureError():
                return self._failed(str(error))
            case httpx.ConnectError():
                return self._ended("unconnected", _named(error))
            case httpx.ConnectTimeout():
                return self._ended("connect-deadline", _named(error))
            case NotHttpError():
                return self._ended("unparsable", str(error))
            case _:
                return self._ended("broken", _named(error))

    def _failed(self, detail: str) -> tuple[End, str]:
        """It is the rig's own machine that could not."""
        self.own_failure = detail
        return self._ended("unconnected", f"of the rig's own machine: {detail}")

    def judge(self, end: End, detail: str) -> Judgement:
        streamed = self._call.streamed and (self._reader is None or isinstance(self._reader, StreamReader))
        detail = f"Location: {self._location}" if self._location else detail
        return judge(
            streamed=streamed,
            status=self._status,
            heard=self._heard,
            end=end,
            detail=detail,
            token_a_chunk=self._call.token_a_chunk,
        )

    @property
    def answer(self) -> Answer | None:
        return None if self._reader is None else self._reader.answer

    def malformed(self, ended: RequestEnded) -> list[str]:
        """What is wrong with the form of an answer that completed."""
        call, wrong = self._call, [self._heard.mixed] if self._heard.mixed is not None else []
        if call.canary is not None and self.answer is not None:
            told = ended.finish_reason, ended.usage_tokens, call.max_tokens
            wrong += self.answer.malformed(call.canary.mode, *told)
        return wrong

    def record(self, judgement: Judgement, t: float) -> RequestEnded:
        reader, marks, heard = self._reader, self._marks, self._heard
        return RequestEnded(
            t=t,
            id=self._call.id,
            outcome=judgement.outcome,
            how=judgement.how,
            started_t=self._started_t,
            connected_t=marks.connected_t,
            first_byte_t=marks.first_byte_t,
            first_token_t=reader.first_token_t if reader is not None else None,
            last_token_t=reader.last_token_t if reader is not None else None,
            last_progress_t=reader.last_progress_t if reader is not None else None,
            ended_t=t if marks.ended_t is None else marks.ended_t,
            status=self._status,
            response_id=heard.response_id,
            tokens=heard.tokens,
            usage_tokens=heard.usage_tokens,
            finish_reason=heard.finish_reason,
            **({} if reader is None else {"gaps": reader.gaps()}),
            unclean_end=judgement.unclean_end,
            damaged=judgement.damaged,
            own_failure=self.own_failure,
            cause=judgement.cause,
            evidence="" if judgement.outcome == "completed" else self._evidence(judgement.reason),
        )

    def _request(self) -> httpx.Request:
        limits = self._call.limits
        connect_s = min(limits.connect_s, limits.total_s)
        extensions: dict[str, Any] = {"timeout": {"connect": connect_s}, "exchange": self._follow}
        body = self._call.body()
        headers = [
            (b"host", self._call.url.netloc),
            *_HEADERS,
            (b"x-request-id", self._call.id.encode()),  # to find it in the server's own account
            (b"content-length", b"%d" % len(body)),
        ]
        # complete headers and a stream: httpx then adds nothing, which saves it two passes over the headers
        stream = httpx.ByteStream(body)
        return httpx.Request("POST", self._call.url, headers=headers, stream=stream, extensions=extensions)

    def _follow(self, exchange: Exchange) -> None:
        self._marks = exchange.marks
        self._watch.exchange = exchange

    async def _read(self, response: httpx.Response) -> None:
        self._status = status = response.status_code
        self._location = response.headers.get("location", "") if 300 <= status < 400 else ""
        encoding = response.headers.get("content-encoding", "identity").strip().lower()
        readable = encoding in ("identity", "")
        if not readable:
            self._unread.garbage = f"content-encoding {encoding}, where identity was asked for"
        settled = decided(status, self._heard)
        if settled:
            self._watch.decide(self._now())
        stream = response.stream
        assert isinstance(stream, ArrivalStream)

        def take(pieces: Sequence[bytes], times: Sequence[float]) -> None:
            nonlocal settled
            if not readable:
                return
            if self._reader is None:
                self._open(pieces, times)
            else:
                self._reader.feed(pieces, times)
            self._keep_tail(pieces)
            if not settled and decided(status, self._heard):
                settled = True
                self._watch.decide(times[-1])

        try:
            await stream.exchange.read_into(take)
        finally:
            await stream.aclose()

    @property
    def _heard(self) -> Heard:
        return self._unread if self._reader is None else self._reader.heard

    def _open(self, pieces: Sequence[bytes], times: Sequence[float]) -> None:
        """The beginning of the body, which shows who is to read it."""
        data = b"".join(pieces)
        opened = self._opening.take(data)
        if opened is None:
            return
        reader, first = opened
        self._reader = self._watch.reader = reader
        if self._call.canary is not None:
            reader.answer = Answer()
        if first == data:
            reader.feed(pieces, times)
        else:
            reader.feed([first], times[-1:])

    def _keep_tail(self, pieces: Sequence[bytes]) -> None:
        """The last `EVIDENCE_BYTES` of the body, of few of the pieces as a rule; and as many more as a secret has."""
        most, tail = EVIDENCE_BYTES + self._access.longest, b""
        for piece in reversed(pieces):
            tail = piece + tail
            if len(tail) >= most:
                break
        else:
            tail = self._tail + tail
        self._tail = tail[-most:]

    def _ended(self, end: End, detail: str = "") -> tuple[End, str]:
        if self._reader is not None:
            self._reader.end(clean=end == "clean")
        return end, detail

    def _evidence(self, reason: str) -> str:
        """Reason first, then the tail of the body, together at most `EVIDENCE_BYTES`."""
        text = reason.encode("utf-8", "backslashreplace")[: EVIDENCE_BYTES // 2].decode("utf-8", "ignore")
        room = EVIDENCE_BYTES - len(text.encode()) - len(" | ")
        tail = (
            self._access.masked(self._tail)[-room:]
            .decode("utf-8", "backslashreplace")
            .encode()[-room:]
            .decode("utf-8", "ignore")
        )
        return f"{text} | {tail}" if tail and tail not in text else text


def _named(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"
