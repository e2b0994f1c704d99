"""pf.conf text → logical lines of words: comments, continued lines, macros, braces. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass

WORD = re.compile(r'"[^"]*"|<[A-Za-z_][\w.-]*>|[{}!()=,]|[^\s{}!()=,"<>]+|[<>]')
MACRO = re.compile(r'([A-Za-z_]\w*)\s*=\s*"([^"]*)"')
USE = re.compile(r"\$([A-Za-z_]\w*)")


class PfSyntaxError(Exception):
    """`line` counts from 1; 0: the error is not one of the text."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(reason)
        self.line = line
        self.reason = reason


@dataclass
class Line:
    """The words of one statement, taken one after the other."""

    number: int
    words: list[str]

    def error(self, reason: str) -> PfSyntaxError:
        return PfSyntaxError(self.number, reason)

    @property
    def next(self) -> str:
        return self.words[0] if self.words else ""

    def word(self, what: str) -> str:
        if not self.words:
            raise self.error(f"expected {what} at the end of the line")
        return self.words.pop(0)

    def take(self, *options: str) -> str:
        """The next word if it is one of `options`, else an empty string."""
        return self.words.pop(0) if self.next in options else ""

    def take_all(self, *words: str) -> bool:
        if self.words[: len(words)] != list(words):
            return False
        del self.words[: len(words)]
        return True

    def several(self, what: str) -> list[str]:
        """One word, or a list in braces (with or without commas)."""
        if not self.take("{"):
            return [self.word(what)]
        found: list[str] = []
        while not self.take("}"):
            word = self.word(f"{what} or a closing brace")
            if word != ",":
                found.append(word)
        if not found:
            raise self.error(f"expected {what} between the braces")
        return found

    def quoted(self, what: str) -> str:
        word = self.word(what)
        return word[1:-1] if word.startswith('"') else word

    def end(self) -> None:
        if self.words:
            raise self.error(f"unexpected {self.words[0]}")


def lines(text: str) -> list[Line]:
    """Statements in order, macros replaced. Raises PfSyntaxError for a macro that is not defined."""
    macros: dict[str, str] = {}
    found: list[Line] = []
    number, begun, pending = 0, 0, ""
    for raw in text.split("\n"):
        number += 1
        begun = begun or number
        line = raw.partition("#")[0]
        if line.rstrip().endswith("\\"):
            pending += line.rstrip()[:-1] + " "
            continue
        whole, pending = (pending + line).strip(), ""
        if macro := MACRO.fullmatch(whole):
            macros[macro[1]] = macro[2]
        elif whole:
            found.append(Line(begun, WORD.findall(_expanded(whole, macros, begun))))
        begun = 0
    if pending:
        raise PfSyntaxError(number, "the file ends inside a continued line")
    return found


def _expanded(text: str, macros: dict[str, str], number: int) -> str:
    def value(use: re.Match[str]) -> str:
        if use[1] not in macros:
            raise PfSyntaxError(number, f"macro '{use[1]}' not defined")
        return macros[use[1]]

    return USE.sub(value, text)
