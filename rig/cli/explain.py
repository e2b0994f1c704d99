"""`rig explain`: what a check, a figure or a word of a report means."""

from __future__ import annotations

import sys

from rig.errors import EXIT_PASS, UsageError
from rig.report.glossary import Entry, explain, near, shown


def explain_word(*, word: str | None = None) -> int:
    """Print every meaning of the word; without one, all words. Raises UsageError with those that may be meant."""
    entries = list(shown().values()) if word is None else explain(word)
    if not entries:
        close = near(word or "")
        remedy = f"did you mean {' or '.join(close)}?" if close else "rig explain lists every word"
        raise UsageError(f"no report has the word {word!r}", remedy=remedy)
    sys.stdout.write("".join(map(_line, entries)))
    return EXIT_PASS


def _line(entry: Entry) -> str:
    place = f" ({entry.place})" if entry.place else ""
    return f"{entry.word}  [{entry.what}{place}]\n    {entry.meaning}\n"
