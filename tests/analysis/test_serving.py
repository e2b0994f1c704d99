from __future__ import annotations

import pytest

from rig.analysis.recovery.serving import Continuity, compare


def names(*items: str) -> frozenset[str]:
    return frozenset(items)


@pytest.mark.parametrize(
    ("before", "after", "dead", "served", "expected"),
    [
        (names("i"), names("i"), names(), (None, None), "same"),
        (names("i"), names("j"), names(), (None, None), "new"),
        (names("i"), names("i", "j"), names("i"), (None, None), "new"),  # the old one is still listed for 41 s
        (names("i"), names("i", "j"), names(), (None, None), "unknown"),
        (names("i"), names("i", "j"), names(), ("i", "j"), "new"),  # a second instance serves
        (names("i"), names("i", "j"), names(), (None, "i"), "same"),
        (names("i", "k"), names("i"), names(), (None, None), "same"),
        (names("i", "k"), names("j", "l"), names(), (None, None), "new"),
        (names("i", "k"), names("i", "k"), names(), (None, None), "same"),
        (names("i", "k"), names("i", "j"), names(), (None, None), "unknown"),
        (names("i", "k"), None, names(), (None, "i"), "same"),
        (names("i", "k"), None, names(), (None, "j"), "new"),
        (names("i", "k"), names("i", "k"), names(), (None, "j"), "new"),
        (None, names("i"), names(), (None, "i"), "unknown"),
        (names(), names("j"), names(), (None, None), "new"),
        (None, None, names(), (None, None), "unknown"),
        (None, None, names(), ("i", "i"), "same"),
        (names("i"), names(), names(), (None, None), "unknown"),
        (names("i"), names("i"), names("i"), (None, None), "unknown"),
    ],
)
def test_continuity(
    before: frozenset[str] | None,
    after: frozenset[str] | None,
    dead: frozenset[str],
    served: tuple[str | None, str | None],
    expected: Continuity,
) -> None:
    found = compare(
        listed_before=before, listed_after=after, dead=dead, served_before=served[0], served_after=served[1]
    )
    assert found.continuity == expected
