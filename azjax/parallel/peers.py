"""The processes of one run on several machines: they meet, and when one is gone all others stop and name it.

Process 0 listens where all are told to meet. Each other process keeps one connection to it, on which both sides say
every second that they are there; process 0 tells of a loss to the rest. JAX's runtime would end a process whose
coordinator, process 0, died with a stack trace and without a word on whom; so elsewhere it talks to the coordinator
through a relay on its own machine, which keeps its side open whatever happens to the other.
"""

import contextlib
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator

import jax

from azjax.core.errors import RunError
from azjax.parallel.processes import wait_for_all

_MEETING_SECONDS = 300.0  # machines of a cluster do not start together
_BEAT_SECONDS = 1.0
_SILENCE_SECONDS = 15.0  # after which a process counts as dead
_VERDICT_SECONDS = 3.0  # in which the death that an error may come of is told
_GRACE_SECONDS = 8.0  # for a process that has an error of its own to tell it
_HELLO, _HELLO_SECONDS = "azjax process ", 10.0


@contextlib.contextmanager
def joined(coordinator: str, process: int, processes: int) -> Iterator[None]:
    """One of several processes that run the same program: inside, `jax.devices()` are those of all.

    When a process is gone, or stops with an error, all others end within 30 seconds with exit code 1 and a line that
    names it. Nothing of JAX may have run before.

    Args:
      coordinator: HOST:PORT of process 0, where all meet within 300 seconds.
      process: which one this is, 0..processes - 1.
      processes: how many there are.

    Raises:
      RunError: not all came, or they were not started alike, or process 0 cannot listen there.
    """
    host, _, port = coordinator.rpartition(":")
    meet = _gather if process == 0 else _come
    peers, runtime = meet(host, int(port), process, processes)
    watch = _Watch(process, peers)
    # Others than CPUs have their own.
    jax.config.update("jax_cpu_collectives_implementation", "gloo")
    jax.distributed.initialize(runtime, processes, process, cluster_detection_method="deactivate")
    try:
        yield
        wait_for_all("the end")
    except BaseException as error:
        own = isinstance(error, RunError) or not watch.somebody_stopped
        watch.fail(own)
        if isinstance(error, Exception):
            # It may come of a peer's end, which the watch tells of.
            time.sleep(_VERDICT_SECONDS if own else 2 * _GRACE_SECONDS)
        raise
    watch.end()
    jax.distributed.shutdown()


class _Watch:
    """Sends and awaits signs of life, and ends this process when a peer is gone.

    Args:
      process: which one this is.
      peers: the connections to others, by their ranks: all of them in process 0, that one elsewhere.
    """

    def __init__(self, process: int, peers: dict[int, socket.socket]):
        self._process = process
        self._peers = peers
        self._ended = self._failed = self._silent = False
        self._stopping = threading.Lock()
        self.somebody_stopped = False
        for rank in peers:
            threading.Thread(target=self._listen, args=(rank,), daemon=True).start()
        threading.Thread(target=self._beat, daemon=True).start()

    def tell(self, line: str) -> None:
        """Sends a line to all."""
        for peer in self._peers.values():
            with contextlib.suppress(OSError):  # who listens to it finds out
                peer.sendall(f"{line}\n".encode())

    def end(self) -> None:
        """From here on nobody is missed, and this process is not."""
        self._ended = True
        self.tell("done")

    def fail(self, own: bool) -> None:
        """This process is about to stop with an error, its `own` or what comes of another's."""
        self._failed, self._silent = own, True
        self.tell("stopped")

    def _beat(self) -> None:
        while not self._silent:
            self.tell("here")
            time.sleep(_BEAT_SECONDS)

    def _listen(self, rank: int) -> None:
        peer, how = self._peers[rank], "died"
        try:
            for line in _lines(peer, _SILENCE_SECONDS):
                match line.split():
                    case ["done"]:
                        return
                    case ["lost", other, *told]:  # process 0 tells of another
                        self._stop(int(other), " ".join(told))
                    case ["stopped"]:
                        how, self.somebody_stopped = "stopped", True
                        peer.settimeout(_GRACE_SECONDS)
        except TimeoutError:
            if how != "stopped":
                how = f"gave no sign of life for {_SILENCE_SECONDS:.0f} seconds"
        except OSError:  # its connection broke
            pass
        self._stop(rank, how)

    def _stop(self, rank: int, how: str) -> None:
        with self._stopping:  # the first one is told; nobody comes after it
            if self._ended or (self._failed and how == "stopped"):
                return
            self.tell(f"lost {rank} {how}")
            try:
                print(
                    f"azjax: process {rank} {how}, so that process {self._process} stops too; the same command with "
                    "--resume in every process goes on from the last checkpoint",
                    file=sys.stderr,
                    flush=True,
                )
            finally:  # nobody may read it
                # The main thread may wait for the other for ever, and what runs at exit would too.
                os._exit(1)


def _gather(host: str, port: int, process: int, processes: int) -> tuple[dict[int, socket.socket], str]:
    """Process 0: waits for all others, and tells them where JAX's coordinator listens."""
    del host, process
    peers: dict[int, socket.socket] = {}
    deadline = time.monotonic() + _MEETING_SECONDS
    try:
        server = socket.create_server(("", port))
    except (OSError, OverflowError) as error:
        raise RunError(f"process 0 cannot listen on port {port}: {error}") from error
    with server, contextlib.ExitStack() as opened:
        while len(peers) < processes - 1:
            server.settimeout(max(deadline - time.monotonic(), 0.01))
            try:
                peer, _ = server.accept()
            except TimeoutError:
                missing = ", ".join(str(rank) for rank in range(1, processes) if rank not in peers)
                raise RunError(f"of {processes} processes there never came: {missing}") from None
            opened.enter_context(peer)
            try:
                rank, count = (int(word) for word in next(_lines(peer, _HELLO_SECONDS)).removeprefix(_HELLO).split())
            except (OSError, ValueError, StopIteration):  # somebody else
                peer.close()
                continue
            if count != processes or not 0 < rank < processes or rank in peers:
                problem = f"process {rank} of {count} came where process 0 of {processes} waits for the others"
                peer.sendall(f"refused {problem}\n".encode())
                raise RunError(problem)
            peers[rank] = peer
        opened.pop_all()
    with socket.create_server(("", 0)) as free:
        runtime_port = free.getsockname()[1]
    for peer in peers.values():
        peer.sendall(f"welcome {runtime_port}\n".encode())
    return peers, f"localhost:{runtime_port}"


def _come(host: str, port: int, process: int, processes: int) -> tuple[dict[int, socket.socket], str]:
    """Another process: goes to process 0."""
    deadline = time.monotonic() + _MEETING_SECONDS
    while True:
        try:
            peer = socket.create_connection((host, port), timeout=_HELLO_SECONDS)
            break
        except OSError as error:  # not there yet, or its name
            if time.monotonic() > deadline:
                raise RunError(f"process 0 cannot be reached at {host}:{port}: {error}") from error
            time.sleep(_BEAT_SECONDS)
    with contextlib.ExitStack() as opened:
        opened.enter_context(peer)
        try:
            peer.sendall(f"{_HELLO}{process} {processes}\n".encode())
            word, _, rest = next(_lines(peer, _MEETING_SECONDS)).partition(" ")
        except (OSError, StopIteration) as error:
            raise RunError(f"process 0 at {host}:{port} stopped before all processes had come") from error
        if word != "welcome":
            raise RunError(rest)
        opened.pop_all()
    return {0: peer}, f"localhost:{_relay(host, int(rest))}"


def _lines(connection: socket.socket, seconds: float) -> Iterator[str]:
    """The lines that come, none of which may take longer than so many seconds."""
    connection.settimeout(seconds)
    waiting = b""
    while received := connection.recv(4096):
        *lines, waiting = (waiting + received).split(b"\n")
        yield from (line.decode() for line in lines)


def _relay(host: str, port: int) -> int:
    """A port of this machine that leads to one of `host`, and stays open when that is gone."""
    server = socket.create_server(("localhost", 0))

    def carry(source: socket.socket, target: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while received := source.recv(65_536):
                target.sendall(received)

    def serve() -> None:
        while True:
            near, _ = server.accept()
            with contextlib.suppress(OSError):
                far = socket.create_connection((host, port))
                for ends in ((near, far), (far, near)):
                    threading.Thread(target=carry, args=ends, daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    return server.getsockname()[1]
