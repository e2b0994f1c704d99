"""The real command behind one that a node answers: run from outside, bounded in time."""

from __future__ import annotations

import asyncio
import os

from rig.lab.embedded.machine.answering import Answer
from rig.lab.embedded.machine.nft import CommandError

LIMIT_S = 20.0


async def real(program: str, *arguments: str, folder: str = "/") -> Answer:
    """What `program` (an absolute path) says, in `folder` or, where that is gone, in `/`.

    Raises CommandError when it has not ended within LIMIT_S.
    """
    process = await asyncio.create_subprocess_exec(
        *(program, *arguments),
        cwd=_standing(folder),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(LIMIT_S):
            out, err = await process.communicate()
    except TimeoutError as error:
        process.kill()
        raise CommandError(f"{os.path.basename(program)}: no end within {LIMIT_S:g} s") from error
    return Answer(process.returncode or 0, out.decode(errors="replace"), err.decode(errors="replace"))


def _standing(folder: str) -> str:
    return folder if os.path.isdir(folder) else "/"
