"""What the analysis must know of an OpenAI-compatible server: nothing but what all have."""

from __future__ import annotations

from typing import Final

from rig.analysis.recovery.judged import Judged

JUDGED: Final = Judged()
