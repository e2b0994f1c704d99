"""An OpenAI-compatible server as a target: it serves chat completions, and answers polls or not."""

from __future__ import annotations

from typing import Final

from rig.targets.openai.api import Server
from rig.targets.target import Opener, Target


def openai_target(server: Server) -> Target:
    return Target(name="openai", views=server, close=server.close)


TARGET: Final = Opener(lambda: openai_target(Server()))
