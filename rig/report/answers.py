"""What one canary was answered, beside what it was answered before the first fault: for `rig show --request`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from rig.analysis.answers.variants import Asked
from rig.analysis.answers.watch import AnswerWatch
from rig.journal.records import AnswerMalformed, AnyRecord, CanaryAnswered

_SHOWN = 60  # characters on either side of the first that differs


def answer_lines(records: Callable[[], Iterable[AnyRecord]], request: str) -> list[str]:
    """Nothing for a request that is no canary, was not answered, and has a sound form."""
    watch, texts = AnswerWatch(), dict[tuple[Asked, str], str]()
    answer: CanaryAnswered | None = None
    lines: list[str] = []
    for record in records():
        watch.feed(record)
        if isinstance(record, CanaryAnswered):
            if record.pieces:
                texts[_asked(record), record.digest] = "".join(record.pieces)
            answer = record if record.id == request else answer
        elif isinstance(record, AnswerMalformed) and record.id == request:
            lines += [f"  malformed: {what}" for what in record.what]
    if answer is None:
        return lines
    asked = _asked(answer)
    variants = watch.variants.get(asked)
    lines.insert(0, f"  canary {asked}{', asked alone' if answer.alone else ''}")
    if variants is None or variants.digest is None:
        known = "varied" if variants is not None and variants.varied else "was not asked often enough"
        return [*lines, f"  before the first fault it {known}: it is not judged"]
    if answer.digest == variants.digest:
        return [*lines, "  answered as before the first fault"]
    found = next((altered for altered in (*watch.altered, *watch.wavering) if altered.id == request), None)
    if found is None:
        return [*lines, "  answered otherwise than before the first fault"]
    difference = found.difference
    lines.append(f"  altered: {difference.how} from token {difference.token} on, {difference.detail}")
    return [
        *lines,
        *_beside(texts.get((asked, variants.digest), ""), texts.get((asked, answer.digest), ""), difference.at),
    ]


def _beside(before: str, now: str, at: int) -> list[str]:
    """Both texts around the first character that differs, one under the other, in the form of Python literals."""
    first = max(at - _SHOWN, 0)
    alike = repr(before[first:at])[1:-1]
    lines = [
        f"    {word} {alike}{repr(text[at : at + _SHOWN])[1:-1]}"
        for word, text in (("before", before), ("now   ", now))
    ]
    return [*lines, f"           {' ' * len(alike)}^"]


def _asked(answer: CanaryAnswered) -> Asked:
    return Asked(answer.model, answer.canary, answer.streamed)
