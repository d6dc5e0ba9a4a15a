"""The processes of one run on several machines: they meet, and when one ends all others stop and name it.

Process 0 listens at the coordinator's address. Each other process keeps one connection to it, over which both sides
send a sign of life every second. Process 0 reports a lost process to the rest. A process proves that it knows the token
of the environment variable `AZJAX_MEETING_TOKEN`, which is the same in all of them and never sent.

If the coordinator of JAX's runtime in process 0 dies, JAX ends the other processes with a stack trace that names no
process. So they reach the coordinator through a relay on their own machine, which stays open whatever happens.
"""

import contextlib
import hashlib
import hmac
import os
import re
import secrets
import socket
import sys
import threading
import time
from collections.abc import Iterator

import jax

from azjax.core.errors import AzjaxError, InputError, RunError
from azjax.parallel.processes import wait_for_all

_MEETING_SECONDS = 300.0  # the machines of a cluster do not start together
_BEAT_SECONDS = 1.0
_SILENCE_SECONDS = 15.0  # after which a process counts as dead
_REPORT_SECONDS = 3.0  # in which the loss of a process, a possible cause of an error, is reported
_GRACE_SECONDS = 8.0  # for a process to print its own error
_HELLO, _HELLO_SECONDS = "azjax process ", 10.0
_TOKEN = "AZJAX_MEETING_TOKEN"


@contextlib.contextmanager
def joined(coordinator: str, process: int, processes: int) -> Iterator[None]:
    """Joins the processes that run the same program; inside, `jax.devices()` are the devices of all.

    When a process dies or stops with an error, all others end within 30 seconds with exit code 1 and a line that names
    it. JAX must not have been used before.

    Args:
      coordinator: HOST:PORT of process 0, where all processes meet within 300 seconds. Process 0 listens there alone:
        HOST must be the address by which the others reach it.
      process: the number of this process, 0..processes - 1.
      processes: the number of processes.

    Raises:
      InputError: the coordinator is no HOST:PORT, or the process is not 0..processes - 1.
      RunError: a process is missing, the processes were started with different numbers, or process 0 cannot listen.
    """
    check_meeting(coordinator, process, processes)
    host, _, port = coordinator.rpartition(":")
    peers, runtime = (
        _accept_all(host, int(port), processes) if process == 0 else _connect(host, int(port), process, processes)
    )
    watch = _Watch(process, peers)
    # GPUs and TPUs have their own collectives.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(
        runtime, processes, process, coordinator_bind_address=runtime, cluster_detection_method="deactivate"
    )
    try:
        yield
        wait_for_all("the end")
    except BaseException as error:
        own = isinstance(error, AzjaxError) or not watch.peer_stopped
        watch.fail(own)
        if isinstance(error, Exception):
            # The end of a peer may have caused the error. If so, the watch reports the peer.
            time.sleep(_REPORT_SECONDS if own else 2 * _GRACE_SECONDS)
        raise
    watch.end()
    jax.distributed.shutdown()


def check_meeting(coordinator: str, process: int, processes: int) -> None:
    """Checks the arguments of `joined`.

    Raises:
      InputError: one is out of range.
    """
    address = re.fullmatch(r"[^:\[\]]+:(\d{1,5})", coordinator)
    if address is None or not 0 < int(address[1]) < 2**16:
        raise InputError(f"coordinator must be HOST:PORT with a port of 1..65535, got {coordinator!r}")
    if processes < 1:
        raise InputError(f"processes must be at least 1, got {processes}")
    if not 0 <= process < processes:
        raise InputError(f"process must be 0..{processes - 1}, got {process}")


class _Watch:
    """Sends and awaits signs of life, and ends this process when a peer is lost.

    Args:
      process: the number of this process.
      peers: connections by the number of the process: all others in process 0, only process 0 elsewhere.
    """

    def __init__(self, process: int, peers: dict[int, socket.socket]):
        self._process = process
        self._peers = peers
        self._ended = self._failed = self._silent = False
        self._stopping = threading.Lock()
        self.peer_stopped = False
        for rank in peers:
            threading.Thread(target=self._listen, args=(rank,), daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()

    def end(self) -> None:
        """From here on this process and its peers may end."""
        self._ended = True
        self._send("done")

    def fail(self, own: bool) -> None:
        """This process is about to end with an error, its `own` or one that the end of a peer has caused."""
        self._failed, self._silent = own, True
        self._send("stopped")

    def _send(self, line: str) -> None:
        for peer in self._peers.values():
            with contextlib.suppress(OSError):  # the thread that listens to this peer reports it
                peer.sendall(f"{line}\n".encode())

    def _beat(self) -> None:
        while not self._silent:
            self._send("here")
            time.sleep(_BEAT_SECONDS)

    def _listen(self, rank: int) -> None:
        peer, how = self._peers[rank], "died"
        try:
            for line in _lines(peer, _SILENCE_SECONDS):
                match line.split():
                    case ["done"]:
                        return
                    case ["lost", other, *words]:  # process 0 reports another process
                        self._stop(int(other), " ".join(words))
                    case ["stopped"]:
                        how, self.peer_stopped = "stopped", True
                        peer.settimeout(_GRACE_SECONDS)
        except TimeoutError:
            if how != "stopped":
                how = f"gave no sign of life for {_SILENCE_SECONDS:.0f} seconds"
        except OSError:  # the connection broke
            pass
        self._stop(rank, how)

    def _stop(self, rank: int, how: str) -> None:
        with self._stopping:  # only the first loss is reported, since the process ends here
            if self._ended or (self._failed and how == "stopped"):
                return
            self._send(f"lost {rank} {how}")
            try:
                print(
                    f"azjax: process {rank} {how}, so that process {self._process} stops too; the same command with "
                    "--resume in every process goes on from the last checkpoint",
                    file=sys.stderr,
                    flush=True,
                )
            finally:  # even if standard error is closed
                # sys.exit would not do: the main thread and the functions that run at exit may wait for the peer.
                os._exit(1)


def _server(host: str, port: int) -> socket.socket:
    """A server at an address of this machine."""
    family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    return socket.create_server(address, family=family)


def _proof(challenge: str, process: int, processes: int) -> str:
    """What only a process that knows the token can answer."""
    token = os.environ.get(_TOKEN, "")
    return hmac.new(token.encode(), f"{challenge} {process} {processes}".encode(), hashlib.sha256).hexdigest()


def _accept_all(host: str, port: int, processes: int) -> tuple[dict[int, socket.socket], str]:
    """In process 0: waits for all others.

    Returns:
      the connections by the number of the process, and the address of JAX's coordinator.
    """
    peers: dict[int, socket.socket] = {}
    deadline = time.monotonic() + _MEETING_SECONDS

    def waiting() -> set[int]:
        return {rank for rank, peer in peers.items() if not _has_closed(peer)}

    try:
        server = _server(host, port)
    except (OSError, OverflowError) as error:
        raise RunError(f"process 0 cannot listen at {host}:{port}: {error}") from error
    with server, contextlib.ExitStack() as opened:
        while len(waiting()) < processes - 1:
            server.settimeout(max(deadline - time.monotonic(), 0.01))
            try:
                peer, _ = server.accept()
            except TimeoutError:
                missing = ", ".join(map(str, sorted({*range(1, processes)} - waiting())))
                raise RunError(f"of {processes} processes these are missing: {missing}") from None
            opened.enter_context(peer)
            challenge = secrets.token_hex()
            try:
                peer.sendall(f"{challenge}\n".encode())
                first, second, proof = next(_lines(peer, _HELLO_SECONDS)).removeprefix(_HELLO).split()
                rank, count = int(first), int(second)
                if not hmac.compare_digest(proof.encode(), _proof(challenge, rank, count).encode()):
                    peer.sendall(f"refused {_TOKEN} is not the same as in process 0\n".encode())
                    raise ValueError("a process with another token")
            except (OSError, ValueError, StopIteration):  # not a process of this run
                peer.close()
                continue
            problem = ""
            if count != processes or not 0 < rank < processes:
                problem = f"process {rank} of {count} came where process 0 of {processes} waits for the others"
            elif rank in waiting():
                problem = f"process {rank} of {processes} came twice"
            if problem:
                with contextlib.suppress(OSError):
                    peer.sendall(f"refused {problem}\n".encode())
                raise RunError(problem)
            if rank in peers:  # the process was started again
                peers[rank].close()
            peers[rank] = peer
        opened.pop_all()
    with _server(host, 0) as free:
        runtime_port = free.getsockname()[1]
    for rank, peer in peers.items():
        try:
            peer.sendall(f"welcome {runtime_port}\n".encode())
        except OSError as error:
            raise RunError(f"process {rank} ended before all {processes} had come") from error
    return peers, f"{host}:{runtime_port}"


def _has_closed(peer: socket.socket) -> bool:
    """Whether a process that waits for the others, and so sends nothing, has ended."""
    before = peer.gettimeout()
    peer.setblocking(False)
    try:
        return not peer.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    except OSError:
        return True
    finally:
        peer.settimeout(before)


def _reach(host: str, port: int) -> socket.socket:
    """A connection to process 0."""
    deadline = time.monotonic() + _MEETING_SECONDS
    while True:
        try:
            return socket.create_connection((host, port), timeout=_HELLO_SECONDS)
        except OSError as error:  # the process, or the name of its machine, may not be there yet
            if time.monotonic() > deadline:
                raise RunError(f"process 0 cannot be reached at {host}:{port}: {error}") from error
            time.sleep(_BEAT_SECONDS)


def _connect(host: str, port: int, process: int, processes: int) -> tuple[dict[int, socket.socket], str]:
    """In any other process: connects to process 0. Returns as `_accept_all`."""
    with contextlib.ExitStack() as opened:
        peer = opened.enter_context(_reach(host, port))
        try:
            challenge = next(_lines(peer, _MEETING_SECONDS))
            peer.sendall(f"{_HELLO}{process} {processes} {_proof(challenge, process, processes)}\n".encode())
            word, _, rest = next(_lines(peer, _MEETING_SECONDS)).partition(" ")
        except (OSError, StopIteration) as error:
            raise RunError(f"process 0 at {host}:{port} stopped before all processes had come") from error
        if word != "welcome":
            raise RunError(rest)
        opened.pop_all()
    return {0: peer}, f"localhost:{_relay(host, int(rest))}"


def _lines(connection: socket.socket, seconds: float) -> Iterator[str]:
    """The lines received; each may take this many seconds."""
    connection.settimeout(seconds)
    waiting = b""
    while received := connection.recv(4096):
        *lines, waiting = (waiting + received).split(b"\n")
        yield from (line.decode() for line in lines)


def _relay(host: str, port: int) -> int:
    """A port of this machine that is forwarded to `port` of `host`, and stays open when that closes."""
    server = socket.create_server(("localhost", 0))

    def forward(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while received := source.recv(65_536):
                target.sendall(received)

    def serve() -> None:
        while True:
            near, _ = server.accept()
            try:
                far = socket.create_connection((host, port))
            except OSError:  # JAX tries again
                near.close()
                continue
            for ends in ((near, far), (far, near)):
                threading.Thread(target=forward, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    relay_port: int = server.getsockname()[1]
    return relay_port
