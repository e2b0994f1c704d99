"""Carries a node's logic: tells it the time, its links, its runners and its clients, and does what it answers."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from rig.lab.embedded.process.api_log import ApiLog
from rig.lab.embedded.process.chat import ChatStream
from rig.lab.embedded.process.files import EventLog, ExoLog
from rig.lab.embedded.process.instances import Noted
from rig.lab.embedded.process.links import Links
from rig.lab.embedded.process.runners import Runners
from rig.lab.embedded.settings import NodeSettings
from rig.lab.exo.api_types import ChatRequest, Reply
from rig.lab.exo.behaviour import Behaviour, Timers
from rig.lab.exo.effects import (
    DropLink,
    Effect,
    EndStream,
    Exit,
    Log,
    MasterLog,
    RunnerCommand,
    Send,
    StartRunner,
    StopRunner,
    StreamPrefill,
    StreamToken,
)
from rig.lab.exo.messages import AnyMessage
from rig.lab.exo.models import STOCK_MODELS
from rig.lab.exo.node import NodeLogic
from rig.lab.exo.runner import RunnerReport
from rig.lab.ledger import Ledger

T = TypeVar("T")


class Host:
    """`stopped` is set when the process is to end, with `status`."""

    def __init__(
        self,
        settings: NodeSettings,
        ledger: Ledger,
        lifeline_fd: int,
        *,
        behaviour: Behaviour,
        timers: Timers,
        restarted: bool,
    ) -> None:
        home = Path(settings.exo_home)
        self.settings = settings
        self.ledger = ledger
        self.timers = timers
        self.behaviour = behaviour
        self.log = ExoLog(home)
        self.streams: dict[str, ChatStream] = {}
        self.stopped = asyncio.Event()
        self.status = 0
        self.servers: list[asyncio.Server] = []
        self._noted = Noted(ledger, settings.name)
        self._master_log = EventLog(home, "master")
        self.event_log = ApiLog(home, STOCK_MODELS)
        self._loop = asyncio.get_running_loop()
        self.logic = NodeLogic(
            settings.name,
            settings.ipv4,
            [peer.name for peer in settings.peers],
            behaviour=behaviour,
            timers=timers,
            rng=random.Random(),
            restarted=restarted,
        )
        self.links = Links(settings, self, redial_s=timers.redial_s)
        self.runners = Runners(
            settings,
            ledger,
            lifeline_fd,
            orphans=not behaviour.runners_end_with_main,
            spin=behaviour.runners_spin,
            on_reports=self._reports,
            on_exit=self._runner_exited,
        )
        self._timer: asyncio.Handle | None = None
        self._timer_at = 0.0

    async def start(self) -> None:
        await self.runners.start_tracker()
        self.servers.append(await self.links.listen())
        self._do(self.logic.start(self._now()))
        self.links.dial()

    def call(self, ask: Callable[[float], tuple[T, list[Effect]]]) -> T:
        """Ask the logic something on behalf of a client."""
        value, effects = ask(self._now())
        self._do(effects)
        return value

    def takes(self, method: str, path: Sequence[str]) -> float:
        """Seconds before such a request is to be answered."""
        return self.logic.takes(self._now(), method, path)

    def chat(self, request: ChatRequest, make_stream: Callable[[str], ChatStream]) -> ChatStream | Reply:
        """The stream of a request that was taken, in place before anything is sent to it; else the error to answer."""
        accepted, effects = self.logic.chat(self._now(), request)
        if isinstance(accepted, Reply):
            self._do(effects)
            return accepted
        stream = make_stream(accepted.command_id)
        self.streams[accepted.command_id] = stream
        self._do(effects)
        return stream

    def cancel(self, command_id: str) -> None:
        """Asked for by a client over `/v1/cancel`: the request ends cleanly, without an error."""
        stream = self.streams.get(command_id)
        if stream is not None:
            self.client_gone(command_id)
            how = "clean_end" if stream.streamed else "cut_json"
            stream.end(EndStream(command_id, stream.model, how, message="cancelled"))

    def client_gone(self, command_id: str) -> None:
        self.streams.pop(command_id, None)
        self._do(self.logic.client_gone(self._now(), command_id))

    # told by links and runners

    def link_up(self, peer: str) -> None:
        self._do(self.logic.link_up(self._now(), peer))

    def link_down(self, peer: str) -> None:
        self._do(self.logic.link_down(self._now(), peer))

    def received(self, peer: str, messages: list[AnyMessage]) -> None:
        now = self._now()
        for message in messages:
            self._do(self.logic.receive(now, peer, message), rearm=False)
        self._rearm()

    def _reports(self, runner_id: str, reports: list[RunnerReport]) -> None:
        now = self._now()
        for report in reports:
            self._do(self.logic.runner_report(now, runner_id, report), rearm=False)
        self._rearm()

    def _runner_exited(self, runner_id: str, status: int) -> None:
        self._do(self.logic.runner_exited(self._now(), runner_id, -status if status < 0 else None))

    # time

    def _now(self) -> float:
        return self._loop.time()

    def wall(self, now: float) -> float:
        """Unix time of a moment on the loop's clock."""
        return time.time() - self._loop.time() + now

    def _rearm(self) -> None:
        """After every batch of calls: a timer for the next deadline; one that fires early only looks again."""
        self._noted.follow(self.logic.replica)
        self.event_log.follow(self.logic.replica)
        due = self.logic.next_deadline()
        if self._timer is not None:
            if self._timer_at <= due:
                return
            self._timer.cancel()
        self._timer_at = due
        self._timer = self._loop.call_later(max(0.0, due - self._now()), self._tick)

    def _tick(self) -> None:
        self._timer = None
        if self.stopped.is_set():
            return
        now = self._now()
        if self.logic.next_deadline() <= now:
            self._do(self.logic.tick(now))
        else:
            self._rearm()

    # effects

    def _do(self, effects: list[Effect], *, rearm: bool = True) -> None:
        for effect in effects:
            self._carry_out(effect)
        if rearm:
            self._rearm()

    def _carry_out(self, effect: Effect) -> None:
        match effect:
            case StreamToken() | StreamPrefill() | EndStream():
                self._to_client(effect)
            case Send(peer, message):
                self.links.send(peer, message)
            case DropLink(peer):
                self.links.drop(peer)
            case RunnerCommand():
                self.runners.command(effect)
            case StartRunner():
                self.runners.start(effect)
            case StopRunner():
                self.runners.stop(effect)
            case Log(text):
                self.log.write(text)
            case MasterLog():
                self._master_changed(opened=effect.open)
            case Exit():
                self.status = 1
                self.stopped.set()

    def _to_client(self, effect: StreamToken | StreamPrefill | EndStream) -> None:
        stream = self.streams.get(effect.command_id)
        if stream is None:
            return
        match effect:
            case StreamToken():
                stream.token(effect)
            case StreamPrefill():
                stream.prefill(effect)
            case EndStream():
                del self.streams[effect.command_id]
                stream.end(effect)

    def _master_changed(self, *, opened: bool) -> None:
        if opened:
            self._master_log.open()
        else:
            self._master_log.close()
        self._noted.master(opened=opened)
