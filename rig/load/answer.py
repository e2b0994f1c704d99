"""What a canary was answered, in the pieces in which it came, and whether a client may rely on its form. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, Literal, cast

import msgspec

from rig.load.chunks import Chunk, Delta

MOST_CHARACTERS: Final = 1 << 20
_MOST_CALLS: Final = 64


class Answer:
    """Feed it chunks, or one whole answer. `pieces` are texts of chunks: reasoning, content, names and arguments of
    tools as they came, up to the finish reason."""

    def __init__(self) -> None:
        self.pieces: list[str] = []
        self.role_late = False
        self.too_long = False
        self._characters = 0
        self._role = False
        self._finished = False
        self._calls: dict[int, str] = {}  # arguments, by the index of the call

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def chunks(self, chunks: Sequence[Chunk], payloads: Sequence[bytes]) -> None:
        for chunk, payload in zip(chunks, payloads, strict=False):
            self.chunk(chunk, payload)

    def chunk(self, chunk: Chunk, payload: bytes) -> None:
        if not chunk.choices or self._finished:
            return
        if not self._role and b'"role"' in payload:
            self._role, self.role_late = True, bool(self.pieces)
        choice = chunk.choices[0]
        self._finished = bool(choice.finish_reason)
        if choice.delta is not None:
            self._take(choice.delta)
        elif isinstance(choice.text, str):
            self._add(choice.text)

    def whole(self, message: Delta) -> None:
        self._take(message)

    def malformed(
        self, mode: Literal["text", "json", "tools"], finish_reason: str | None, usage: int | None, most_tokens: int
    ) -> list[str]:
        """What is wrong with the form of an answer that completed, in words."""
        wrong: list[str] = []
        if self.role_late:
            wrong.append("the role came after the first text")
        if self.too_long:
            wrong.append(f"longer than {MOST_CHARACTERS} characters, though {most_tokens} tokens were asked for")
        if finish_reason == "length" and usage is not None and usage != most_tokens:
            wrong.append(f"ended by its length after {usage} tokens, though {most_tokens} were asked for")
        if mode == "json" and finish_reason == "stop" and not _is_json(self.text):
            wrong.append("JSON was asked for, and the answer is none")
        if finish_reason in ("tool_calls", "function_call"):
            wrong += [
                f"the arguments of tool call {index} are no JSON"
                for index, text in sorted(self._calls.items())
                if not _is_json(text)
            ]
        return wrong

    def _take(self, delta: Delta) -> None:
        for text in (delta.reasoning_content or delta.reasoning, delta.content, delta.refusal):
            if text and isinstance(text, str):
                self._add(text)
        if delta.tool_calls:
            self._tools(delta.tool_calls)
        if delta.function_call:
            self._tool(0, delta.function_call)

    def _tools(self, calls: Any) -> None:
        if not isinstance(calls, list):
            return
        for place, call in enumerate(cast("list[Any]", calls)):
            if isinstance(call, dict):
                found = cast("dict[str, Any]", call)
                index = found.get("index", place)
                self._tool(index if isinstance(index, int) else place, found.get("function"))

    def _tool(self, index: int, function: Any) -> None:
        if not isinstance(function, dict):
            return
        found = cast("dict[str, Any]", function)
        name, arguments = found.get("name"), found.get("arguments")
        if isinstance(name, str) and name:
            self._add(name)
        if not isinstance(arguments, str):
            return
        if arguments:
            self._add(arguments)
        if not self.too_long and (index in self._calls or len(self._calls) < _MOST_CALLS):
            self._calls[index] = self._calls.get(index, "") + arguments

    def _add(self, text: str) -> None:
        self._characters += len(text)
        if self._characters > MOST_CHARACTERS:
            self.too_long = True
        else:
            self.pieces.append(text)


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text.encode("utf-8", "replace"))
    except (msgspec.DecodeError, RecursionError):
        return False
    return True
