"""The `pfctl` command of a virtual Mac: its options over a Firewall. What is not emulated is an error."""

from __future__ import annotations

import getopt
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass

from rig.lab.mac.pf.firewall import Firewall, PfError, State
from rig.lab.mac.pf.grammar import network, parse
from rig.lab.mac.pf.statements import AnchorCall, FilterRule, LoadAnchor, Network, Ruleset, show
from rig.lab.mac.pf.words import Line, PfSyntaxError

OPTIONS = "a:dEef:F:k:nNqrRs:t:T:vX:"
ALTQ = "No ALTQ support in kernel\nALTQ related functions disabled\n"
SHOWS = ("rules", "nat", "states", "Anchors", "info", "Tables", "References", "dummynet", "all")
FLUSHES = ("rules", "nat", "states", "Tables", "info", "all", "dummynet")
USAGE = (
    "usage: pfctl [-deEqv] [-a anchor] [-f file] [-F modifier] [-k host] [-s modifier] [-t table -T command] [-X t]\n"
)
PACKET_BYTES = 60


@dataclass(frozen=True)
class Said:
    status: int
    out: str = ""
    err: str = ""


@dataclass
class Pfctl:
    """`read_file(path)` as seen from the command's working folder; raises OSError."""

    firewall: Firewall

    def run(self, arguments: list[str], read_file: Callable[[str], str]) -> Said:
        try:
            pairs, rest = getopt.getopt(arguments, OPTIONS)
        except getopt.GetoptError as error:
            return Said(1, err=f"pfctl: {error.msg}\n{USAGE}")
        if not pairs:
            return Said(1, err=USAGE)
        call = _Call(self.firewall, dict(pairs), [value for name, value in pairs if name == "-k"], rest, read_file)
        try:
            out, err = call.run()
        except PfSyntaxError as error:
            path = call.options.get("-f", "-")
            text = f"{path}:{error.line}: syntax error ({error.reason})\n"
            return Said(1, err=f"{text}pfctl: Syntax error in config file: pf rules not loaded\n")
        except PfError as error:
            return Said(1, err=str(error))
        except (OSError, UnicodeDecodeError) as error:
            return Said(1, err=f"pfctl: {error}\n")
        quiet = "-q" in call.options
        return Said(0, out, "" if quiet else (ALTQ if call.notes else "") + err)


@dataclass
class _Call:
    firewall: Firewall
    options: dict[str, str]
    hosts: list[str]
    rest: list[str]
    read_file: Callable[[str], str]
    notes: bool = True

    @property
    def anchor(self) -> str:
        return self.options.get("-a", "").strip("/")

    def run(self) -> tuple[str, str]:
        """(stdout, stderr). In pfctl's order: disable, flush, kill, load, show, enable."""
        options = self.options
        if self.rest and "-T" not in options:
            raise PfError(USAGE)
        out = err = ""
        if "-d" in options:
            self.firewall.disable()
            err += "pf disabled\n"
        if "-X" in options:
            self.firewall.release(options["-X"])
            err += "disable request successful. " + (
                "pf disabled\n" if not self.firewall.enabled else f"{len(self.firewall.tokens)} more pf enable\n"
            )
        if "-F" in options:
            err += self._flush(_modifier(options["-F"], FLUSHES))
        if self.hosts:
            err += self._kill()
        if "-T" in options:
            out += self._table(options["-T"])
        if "-f" in options:
            self._load(options["-f"])
        if "-s" in options:
            out += self._show(_modifier(options["-s"], SHOWS))
        if "-E" in options:
            err += f"pf enabled\nToken : {self.firewall.enable(token_for='pfctl')}\n"
        if "-e" in options:
            if self.firewall.enabled:
                raise PfError("pfctl: pf already enabled\n")
            self.firewall.enable()
            err += "pf enabled\n"
        return out, err

    def _load(self, path: str) -> None:
        if path == "-":
            raise PfError("pfctl: -f -: standard input is not emulated\n")
        ruleset = parse(self.read_file(path))
        if self.anchor:
            ruleset.rules = [rule for rule in ruleset.rules if isinstance(rule, FilterRule) or rule.kind == "anchor"]
            if "-n" not in self.options:
                self.firewall.load_anchor(self.anchor, ruleset)
            return
        loads: dict[LoadAnchor, Ruleset] = {load: parse(self.read_file(load.path)) for load in ruleset.loads}
        if "-n" not in self.options:
            self.firewall.load_main(ruleset, loads)

    def _flush(self, what: str) -> str:
        if self.anchor:
            if what not in {"rules", "all", "nat"}:
                raise PfError(f"pfctl: -F {what} with an anchor is not emulated\n")
            if what != "nat":
                self.firewall.flush_anchor(self.anchor, tables=what == "all")
            return "rules cleared\n"
        match what:
            case "rules":
                self.firewall.flush_main()
                return "rules cleared\n"
            case "states":
                return self._kill_all()
            case "all":
                self.firewall.flush_main()
                return f"rules cleared\nnat cleared\n{self._kill_all()}pf: statistics cleared\n"
            case _:
                return f"{what} cleared\n"

    def _kill_all(self) -> str:
        states = self.firewall.states()
        self.firewall.kill(states)
        return f"{len(states)} states cleared\n"

    def _kill(self) -> str:
        """States that began at the first host [and went to the second]."""
        if len(self.hosts) > 2:
            raise PfError(USAGE)
        wanted = [_host(each) for each in self.hosts]

        def hit(state: State) -> bool:
            ends = (state.source, state.destination)
            return all(_within(end, network) for end, network in zip(ends, wanted, strict=False))

        states = [state for state in self.firewall.states() if hit(state)]
        self.firewall.kill(states)
        destinations = 1 if len(wanted) > 1 else 0
        return f"killed {len(states)} states from 1 sources and {destinations} destinations\n"

    def _table(self, command: str) -> str:
        name = self.options.get("-t", "")
        tables = self.firewall.anchors.get(self.anchor, Ruleset()).tables if self.anchor else self.firewall.main.tables
        if not name or name not in tables:
            raise PfError("pfctl: Table does not exist.\n")
        given = tuple(network(word, Line(0, [])) for word in self.rest)
        have = tables[name]
        match command:
            case "show":
                return "".join(f"   {show(each)}\n" for each in have)
            case "add":
                new = (*have, *(each for each in given if each not in have))
            case "delete":
                new = tuple(each for each in have if each not in given)
            case "replace":
                new = given
            case "flush":
                new = ()
            case _:
                raise PfError(f"pfctl: -T {command} is not emulated\n")
        if not self.anchor:
            raise PfError("pfctl: tables of the main ruleset are not emulated\n")
        self.firewall.set_table(self.anchor, name, new)
        return ""

    def _show(self, what: str) -> str:
        shows: dict[str, Callable[[], str]] = {
            "info": self._info,
            "References": self._references,
            "rules": lambda: self._rules(self._ruleset(), dummynet=False),
            "dummynet": lambda: self._rules(self._ruleset(), dummynet=True),
            "Anchors": self._anchors,
            "Tables": lambda: "".join(f"{name}\n" for name in sorted(self._ruleset().tables)),
            "states": lambda: "".join(_state(state) for state in self.firewall.states()),
            "nat": lambda: "",
        }
        if what not in shows:
            raise PfError(f"pfctl: -s {what} is not emulated\n")
        return shows[what]()

    def _info(self) -> str:
        status = "Enabled" if self.firewall.enabled else "Disabled"
        head = f"Status: {status} for 0 days 00:00:00           Debug: Urgent\n"
        table = "State Table                          Total             Rate\n"
        return f"{head}\n{table}  current entries {len(self.firewall.states()):>22}\n"

    def _references(self) -> str:
        lines = [f"{'0':<8}{who:<24}{token}" for token, who in self.firewall.tokens.items()]
        return "TOKENS:\nPID     Process Name            TOKEN\n" + "".join(f"{line}\n" for line in lines)

    def _anchors(self) -> str:
        prefix = f"{self.anchor}/" if self.anchor else ""
        found = {each for each in self.firewall.anchors if each.startswith(prefix) and each != self.anchor}
        return "".join(f"  {each}\n" for each in sorted(found))

    def _ruleset(self) -> Ruleset:
        return self.firewall.anchors.get(self.anchor, Ruleset()) if self.anchor else self.firewall.main

    def _rules(self, ruleset: Ruleset, *, dummynet: bool) -> str:
        lines: list[str] = []
        for rule in ruleset.rules:
            if isinstance(rule, AnchorCall):
                if rule.kind in ({"dummynet-anchor"} if dummynet else {"anchor", "scrub-anchor"}):
                    lines.append(str(rule))
            elif (rule.action == "dummynet") == dummynet:
                lines.append(str(rule))
                if "-v" in self.options:
                    packets = self.firewall.packets(rule)
                    lines.append(
                        f"  [ Evaluations: {packets:<9} Packets: {packets:<9} "
                        f"Bytes: {packets * PACKET_BYTES:<11} States: 0     ]"
                    )
                    lines.append(f"  [ Inserted: uid 0 pid {ruleset.inserted_by} ]")
        return "".join(f"{line}\n" for line in lines)


def _modifier(word: str, known: tuple[str, ...]) -> str:
    """A modifier may be cut short. Raises PfError for one that is not known."""
    for each in known:
        if word and each.startswith(word):
            return each
    raise PfError(f"pfctl: Unknown show/flush modifier {word!r}\n{USAGE}")


def _host(word: str) -> Network:
    try:
        bare, slash, prefix = word.partition("/")
        return ipaddress.ip_network(bare.partition("%")[0] + slash + prefix, strict=False)
    except ValueError as error:
        raise PfError(f"pfctl: cannot resolve {word}\n") from error


def _within(address: str, wanted: Network) -> bool:
    parsed = ipaddress.ip_address(address)
    return parsed.version == wanted.version and parsed in wanted


def _state(state: State) -> str:
    def end(address: str, port: int) -> str:
        return f"{address}:{port}" if state.family == 4 else f"{address}[{port}]"

    source, destination = end(state.source, state.source_port), end(state.destination, state.destination_port)
    return f"ALL {state.protocol} {source} -> {destination}       ESTABLISHED:ESTABLISHED\n"
