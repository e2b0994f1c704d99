"""What the analysis must know of OpenAI-compatible servers: each of them serves alone."""

from __future__ import annotations

from typing import Final

from rig.analysis.recovery.judged import Judged

JUDGED: Final = Judged(nodes_serve_alone=True)
