"""What an answer says that comes whole: one JSON body. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from rig.journal.records import Gaps
from rig.load.answer import Answer
from rig.load.chunks import Chunk, bears_content, chunk_of, given_up, kept, text_of, value_of
from rig.load.outcome import Heard
from rig.load.told import finish_of, gave_up, is_empty, says_failure

MAX_BODY_BYTES: Final = 16 * 1024 * 1024


class BodyReader:
    """Reads an answer that is not streamed. Its one progress is the arrival of bytes; it has no first token."""

    def __init__(self, max_bytes: int = MAX_BODY_BYTES) -> None:
        self.heard = Heard()
        self.answer: Answer | None = None
        self.first_token_t: float | None = None
        self.last_token_t: float | None = None
        self.last_progress_t: float | None = None
        self._max_bytes = max_bytes
        self._pieces: list[bytes] = []
        self._size = 0

    def feed(self, pieces: Sequence[bytes], times: Sequence[float]) -> None:
        self._size += sum(map(len, pieces))
        self.last_progress_t = times[-1]
        if self._size > self._max_bytes:
            self.heard.garbage = f"a body longer than {self._max_bytes} bytes, the rig's own limit"
            self._pieces.clear()
        else:
            self._pieces += pieces

    def end(self, *, clean: bool) -> None:
        """Only a whole body is judged: what a broken connection left of one says nothing."""
        body = b"".join(self._pieces).strip()
        self._pieces.clear()
        self.heard.body_bytes = len(body)
        if not clean or not body or self.heard.garbage is not None:
            return
        answer = chunk_of(body)
        if answer is not None:
            self._understand(answer, body)
        elif says_failure(value_of(body)):
            self.heard.error = text_of(body)
        else:
            self.heard.garbage = text_of(body)

    def gaps(self) -> Gaps:
        return Gaps()

    def _understand(self, answer: Chunk, body: bytes) -> None:
        heard = self.heard
        heard.response_id = None if answer.id is None else str(answer.id)
        if answer.usage is not None and answer.usage.completion_tokens is not None:
            heard.usage_tokens = kept(answer.usage.completion_tokens)
        if not is_empty(answer.error):
            heard.error = text_of(body)
            return
        if not answer.choices:
            self._instead(body)
            return
        choice = answer.choices[0]
        message = choice.message
        if choice.text or (message is not None and bears_content(message)):
            heard.tokens = 1
        if self.answer is not None and message is not None:
            self.answer.whole(message)
        reason = finish_of(choice.finish_reason)
        if not is_empty(choice.error):
            heard.error = text_of(body)
        elif reason is not None and gave_up(reason):
            heard.error = text_of(given_up(reason, body))
        else:
            heard.finish_reason = reason

    def _instead(self, body: bytes) -> None:
        """An object that is no answer: words for the client, whatever they are."""
        value = value_of(body)
        if says_failure(value):
            self.heard.error = text_of(body)
        elif isinstance(value, dict) and value and "choices" not in value:
            self.heard.remark = text_of(body)
