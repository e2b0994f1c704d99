"""An OpenAI-compatible server as a target: it serves chat completions, and has no other ability."""

from __future__ import annotations

from typing import Final

from rig.targets.target import Opener, Target

TARGET: Final = Opener(lambda: Target(name="openai"))
