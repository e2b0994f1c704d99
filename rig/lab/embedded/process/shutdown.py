"""How exo ends when it is asked to: streams end, runners end, connections close."""

from __future__ import annotations

import asyncio

from aiohttp import web

from rig.lab.embedded.process.host import Host
from rig.lab.exo.effects import EndHow, EndStream, StopRunner

END_S = 2.0


async def shut_down(host: Host, api: web.AppRunner) -> None:
    """Attached streams end as the behaviour has it: with an error event, or (exo 0.3.70) cleanly and without a word."""
    told = host.behaviour.on_instance_gone == "error"
    streamed_end: EndHow = "error_event" if told else "clean_end"
    plain_end: EndHow = "abort" if told else "empty_body"
    for command_id, stream in list(host.streams.items()):
        how = streamed_end if stream.streamed else plain_end
        stream.end(EndStream(command_id, stream.model, how, message="exo is shutting down"))
    host.streams.clear()
    for runner_id in list(host.runners.running):
        host.runners.stop(StopRunner(runner_id))
    for server in host.servers:
        server.close()
    try:
        async with asyncio.timeout(END_S):
            await api.cleanup()
            await host.runners.all_ended()
    except TimeoutError:
        for runner_id in list(host.runners.running):
            host.runners.stop(StopRunner(runner_id, kill=True))
        await asyncio.sleep(0.05)
