"""How processes meet, watch each other and end, without JAX; tests/slow/test_many_processes.py tests it with JAX."""

import contextlib
import hashlib
import hmac
import re
import socket
import subprocess
import sys
import threading
import time

import pytest

from azjax.core.errors import RunError
from azjax.parallel import peers


@pytest.fixture
def port():
    with socket.create_server(("", 0)) as free:
        return free.getsockname()[1]


def _meet(port, ranks, processes):
    """The connections or the error message of each process of `ranks`."""
    met = {}

    def meet(rank, processes):
        try:
            met[rank] = (
                peers._accept_all("localhost", port, processes)
                if rank == 0
                else peers._connect("localhost", port, rank, processes)
            )
        except RunError as error:
            met[rank] = str(error)

    threads = [threading.Thread(target=meet, args=each) for each in zip(ranks, processes, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return met


def _close(met):
    for connections, _ in met.values():
        for connection in connections.values():
            connection.close()


def test_all_meet_at_process_0(port):
    met = _meet(port, [0, 1, 2], [3, 3, 3])
    assert {rank: sorted(connections) for rank, (connections, _) in met.items()} == {0: [1, 2], 1: [0], 2: [0]}
    _close(met)


def test_processes_with_different_numbers_of_processes_are_refused(port):
    met = _meet(port, [0, 1], [2, 3])
    assert met[0] == met[1] == "process 1 of 3 came where process 0 of 2 waits for the others"


@contextlib.contextmanager
def _waiting(port, rank, processes):
    """A process that has come and waits for the others, until the context ends."""
    with peers._reach("localhost", port) as connection:
        challenge = next(peers._lines(connection, 60))
        connection.sendall(f"{peers._HELLO}{rank} {processes} {peers._proof(challenge, rank, processes)}\n".encode())
        yield


@pytest.mark.parametrize("last", [1, 2])
def test_a_process_that_was_started_again_takes_its_own_place(last, port):
    met = {}
    server = threading.Thread(target=lambda: met.update(_meet(port, [0], [3])))
    server.start()
    with _waiting(port, 1, 3):
        pass
    other = threading.Thread(target=lambda: met.update(_meet(port, [3 - last], [3])))
    other.start()
    time.sleep(0.5)  # so that process 0 meets the other first
    met |= _meet(port, [last], [3])
    other.join(60)
    server.join(60)
    assert {rank: sorted(connections) for rank, (connections, _) in met.items()} == {0: [1, 2], 1: [0], 2: [0]}
    _close(met)


def test_a_process_that_comes_twice_is_refused(port):
    met = {}
    server = threading.Thread(target=lambda: met.update(_meet(port, [0], [3])))
    server.start()
    with _waiting(port, 1, 3):
        met |= _meet(port, [1], [3])
        server.join(60)
    assert met == {0: "process 1 of 3 came twice", 1: "process 1 of 3 came twice"}


def test_missing_processes_are_named(port, monkeypatch):
    monkeypatch.setattr(peers, "_MEETING_SECONDS", 1.0)
    assert _meet(port, [0], [3])[0] == "of 3 processes these are missing: 1, 2"
    assert re.match(rf"process 0 cannot be reached at localhost:{port}: .*refused", _meet(port, [1], [3])[1])


def test_a_connection_from_another_program_does_not_count(port):
    met = {}
    server = threading.Thread(target=lambda: met.update(_meet(port, [0], [2])))
    server.start()
    stranger = None
    while stranger is None:
        try:
            stranger = socket.create_connection(("localhost", port))
        except OSError:
            continue
    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
    met |= _meet(port, [1], [2])
    server.join(60)
    stranger.close()
    _close(met)


def test_a_process_with_another_token_is_refused_and_the_others_meet(port, monkeypatch):
    monkeypatch.setenv("AZJAX_MEETING_TOKEN", "ours")
    met = {}
    server = threading.Thread(target=lambda: met.update(_meet(port, [0], [2])))
    server.start()
    answer = None
    while answer is None:
        with contextlib.suppress(OSError), socket.create_connection(("localhost", port)) as stranger:
            lines = stranger.makefile()
            challenge = lines.readline().strip()
            proof = hmac.new(b"theirs", f"{challenge} 1 2".encode(), hashlib.sha256).hexdigest()
            stranger.sendall(f"azjax process 1 2 {proof}\n".encode())
            answer = lines.readline()
    assert answer == "refused AZJAX_MEETING_TOKEN is not the same as in process 0\n"
    met |= _meet(port, [1], [2])
    server.join(60)
    assert sorted(met[0][0]) == [1]
    _close(met)


def test_process_0_listens_at_its_address_alone(port):
    with pytest.raises(RunError, match=r"process 0 cannot listen at 192\.0\.2\.1:\d+: "):
        peers._accept_all("192.0.2.1", port, 2)  # no address of this machine
    with peers._server("127.0.0.1", port) as server:
        assert server.getsockname()[0] == "127.0.0.1"


WATCH = """
import socket, sys, time
from azjax.parallel import peers
peers._SILENCE_SECONDS, peers._GRACE_SECONDS = 2.0, 2.0
watch = peers._Watch(0, {{3: socket.socket(fileno=int(sys.argv[1])), 4: socket.socket(fileno=int(sys.argv[2]))}})
{then}
time.sleep(60)
"""


@pytest.mark.slow_except("death", "own error")
@pytest.mark.parametrize(
    ("act", "then", "line"),
    [
        (lambda peer: peer.close(), "", "azjax: process 3 died,"),
        (lambda peer: peer.sendall(b"here\n"), "", "azjax: process 3 gave no sign of life for 2 seconds,"),
        (lambda peer: peer.sendall(b"here\nstopped\n"), "", "azjax: process 3 stopped,"),
        (lambda peer: peer.sendall(b"lost 1 died\n"), "", "azjax: process 1 died,"),
        # The own error is printed instead.
        (
            lambda peer: peer.sendall(b"stopped\n"),
            "watch.fail(True); time.sleep(4); sys.exit('own error')",
            "own error",
        ),
    ],
    ids=["death", "silence", "stop", "reported", "own error"],
)
def test_a_lost_peer_ends_this_process_and_is_reported_to_the_others(act, then, line):
    (ours, lost), (others, witness) = socket.socketpair(), socket.socketpair()
    with ours, lost, others, witness:
        handed = [ours.fileno(), others.fileno()]
        command = [sys.executable, "-c", WATCH.format(then=then), *map(str, handed)]
        process = subprocess.Popen(command, pass_fds=handed, stderr=subprocess.PIPE, text=True)
        ours.close()
        others.close()
        witness.settimeout(0.2)
        received = []

        def live():
            """Sends signs of life and collects messages until the other end closes."""
            with contextlib.suppress(OSError):
                while received[-1:] != [b""]:
                    witness.sendall(b"here\n")
                    with contextlib.suppress(TimeoutError):
                        received.append(witness.recv(4096))

        thread = threading.Thread(target=live)
        thread.start()
        assert lost.recv(4)  # the first sign of life
        act(lost)
        _, err = process.communicate(timeout=60)
        thread.join()
    assert process.returncode == 1
    assert err.startswith(line), err
    assert len(err.splitlines()) == 1
    assert (b"lost " if "azjax" in line else b"stopped") in b"".join(received)
