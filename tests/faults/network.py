"""Two network namespaces with a cable between them: the node's and its peer's, which serves TCP on both families."""

from __future__ import annotations

import socket
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

from tests.faults.node import until

NODE4, PEER4 = "10.99.0.1", "10.99.0.2"
PEER6 = "fe80::99:2"
API_PORT, ZENOH_PORT, SSH_PORT = 52415, 52414, 2222

# Accepts on each `FAMILY:PORT`, answers every line with the line; ends with its stdin.
_SERVER = r"""
import socket, sys, threading
def talk(connection):
    with connection:
        for line in connection.makefile("rb"):
            connection.sendall(line)
def serve(family, port):
    listener = socket.socket(family)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind(("", port))
    listener.listen()
    sys.stdout.write("up\n")  # one write: threads would interleave print's two
    sys.stdout.flush()
    while True:
        threading.Thread(target=talk, args=(listener.accept()[0],), daemon=True).start()
for word in sys.argv[1:]:
    family, port = word.split(":")
    arguments = (socket.AF_INET6 if family == "6" else socket.AF_INET, int(port))
    threading.Thread(target=serve, args=arguments, daemon=True).start()
sys.stdin.read()
"""
# Answers every query for an address with 10.99.0.2: over UDP at port 53 of both families, and as multicast DNS does.
_RESOLVER = """
import socket, struct, sys, threading
def answer(query):
    end = query.index(0, 12) + 5
    found = query[12:end] + struct.pack("!HHHIH4B", 0xC00C, 1, 1, 0, 4, 10, 99, 0, 2)
    return query[:2] + struct.pack("!5H", 0x8180, 1, 1, 0, 0) + found
def serve(family, port, group):
    listener = socket.socket(family, socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    listener.bind(("", port))
    index = socket.if_nametoindex("vpeer")
    if group and family == socket.AF_INET:
        membership = struct.pack("4s4sI", socket.inet_aton(group), bytes(4), index)
        listener.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, membership)
    elif group:
        membership = socket.inet_pton(family, group) + struct.pack("I", index)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_JOIN_GROUP, membership)
    sys.stdout.write("up\\n")
    sys.stdout.flush()
    while True:
        query, sender = listener.recvfrom(4096)
        listener.sendto(answer(query), sender)
for family, port, group in (
    (socket.AF_INET, 53, ""), (socket.AF_INET, 5353, "224.0.0.251"),
    (socket.AF_INET6, 53, ""), (socket.AF_INET6, 5353, "ff02::fb"),
):
    threading.Thread(target=serve, args=(family, port, group), daemon=True).start()
sys.stdin.read()
"""
_CLIENT = """
import socket, sys
connection = socket.create_connection((sys.argv[1], int(sys.argv[2])), 2)
for line in sys.stdin.buffer:
    connection.sendall(line)
    connection.settimeout(float(sys.argv[3]))
    try:
        print("echo" if connection.recv(100) else "closed", flush=True)
    except TimeoutError:
        print("silent", flush=True)
"""


@dataclass
class Network:
    name: str
    processes: list[subprocess.Popen[str]] = field(default_factory=list[subprocess.Popen[str]])

    @property
    def node_ns(self) -> str:
        return f"rigt-n{self.name}"

    @property
    def peer_ns(self) -> str:
        return f"rigt-p{self.name}"

    @property
    def peers(self) -> str:
        return f"{PEER4} {PEER6}%vnode"

    @property
    def enter_node(self) -> list[str]:
        return ["ip", "netns", "exec", self.node_ns]

    def up(self) -> None:
        for namespace in (self.node_ns, self.peer_ns):
            _run("ip", "netns", "add", namespace)
            _run("ip", "-n", namespace, "link", "set", "lo", "up")
        cable = ("ip", "link", "add", "vnode", "netns", self.node_ns, "type", "veth")
        _run(*cable, "peer", "name", "vpeer", "netns", self.peer_ns)
        for namespace, device, four, six in (
            (self.node_ns, "vnode", NODE4, "fe80::99:1"),
            (self.peer_ns, "vpeer", PEER4, PEER6),
        ):
            _run("ip", "-n", namespace, "addr", "add", f"{four}/24", "dev", device)
            _run("ip", "-n", namespace, "link", "set", device, "up")
            _run("ip", "-n", namespace, "addr", "add", f"{six}/64", "dev", device, "nodad")
        self.serve(self.peer_ns, f"4:{API_PORT}", f"6:{ZENOH_PORT}")
        until(lambda: self.reaches(PEER4, API_PORT), "the peer answers over IPv4")
        until(lambda: self.reaches(f"{PEER6}%vnode", ZENOH_PORT), "the peer answers over IPv6")

    def down(self) -> None:
        for process in self.processes:
            process.kill()
            process.wait()
        for namespace in (self.node_ns, self.peer_ns):
            if Path("/run/netns", namespace).exists():
                _run("ip", "netns", "del", namespace)

    def serve(self, namespace: str, *words: str) -> None:
        """Echo servers on `4:PORT` or `6:PORT`."""
        server = self._python(namespace, _SERVER, *words)
        assert server.stdout is not None
        for _ in words:
            assert server.stdout.readline() == "up\n"

    def serve_names(self) -> None:
        """A resolver on the peer."""
        server = self._python(self.peer_ns, _RESOLVER)
        assert server.stdout is not None
        assert [server.stdout.readline() for _ in range(4)] == ["up\n"] * 4

    def connect(self, namespace: str, address: str, port: int) -> Echo:
        """An established connection out of a namespace."""
        return Echo(self._python(namespace, _CLIENT, address, str(port), "0.6"))

    def reaches(self, address: str, port: int, namespace: str | None = None) -> bool:
        code = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 0.6)"
        command = ["ip", "netns", "exec", namespace or self.node_ns, sys.executable, "-c", code, address, str(port)]
        return subprocess.run(command, capture_output=True, timeout=10, check=False).returncode == 0

    def nft(self, *arguments: str) -> str:
        return self.command("nft", *arguments)

    def command(self, *words: str) -> str:
        """In the node's network."""
        return _run(*self.enter_node, *words)

    def nft_on_peer(self, text: str) -> None:
        _run("ip", "netns", "exec", self.peer_ns, "nft", text)

    def _python(self, namespace: str, code: str, *arguments: str) -> subprocess.Popen[str]:
        command = ["ip", "netns", "exec", namespace, sys.executable, "-c", code, *arguments]
        process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.processes.append(process)
        return process


class Echo:
    """An established TCP connection to an echo server."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ask(self) -> str:
        """`echo`, `silent` (nothing within 0.6 s) or `closed`."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("hello\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _run(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=False)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout
