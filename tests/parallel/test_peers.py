"""How processes meet, watch each other and end, without JAX's part; tests/slow/test_many_processes.py has that."""

import contextlib
import re
import socket
import subprocess
import sys
import threading

import pytest

from azjax.runs import RunError
from azjax.training import peers


@pytest.fixture
def port():
    with socket.create_server(("", 0)) as free:
        return free.getsockname()[1]


def _meet(port, ranks, processes):
    """What each process of `ranks` gets: its connections, or its error."""
    found = {}

    def meet(rank, told):
        try:
            way = peers._gather if rank == 0 else peers._come
            found[rank] = way("localhost", port, rank, told)
        except RunError as error:
            found[rank] = str(error)

    threads = [threading.Thread(target=meet, args=each) for each in zip(ranks, processes, strict=True)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return found


def _close(found):
    for connections, _ in found.values():
        for connection in connections.values():
            connection.close()


def test_all_meet_at_process_0(port):
    found = _meet(port, [0, 1, 2], [3, 3, 3])
    assert {rank: sorted(connections) for rank, (connections, _) in found.items()} == {0: [1, 2], 1: [0], 2: [0]}
    _close(found)


def test_processes_that_were_told_of_another_number_are_refused(port):
    found = _meet(port, [0, 1], [2, 3])
    assert found[0] == found[1] == "process 1 of 3 came where process 0 of 2 waits for the others"


def test_who_never_came_is_named(port, monkeypatch):
    monkeypatch.setattr(peers, "_MEETING_SECONDS", 1.0)
    assert _meet(port, [0], [3])[0] == "of 3 processes there never came: 1, 2"
    assert re.match(rf"process 0 cannot be reached at localhost:{port}: .*refused", _meet(port, [1], [3])[1])


def test_somebody_elses_connection_does_not_count(port):
    found = {}
    server = threading.Thread(target=lambda: found.update(_meet(port, [0], [2])))
    server.start()
    stranger = None
    while stranger is None:
        try:
            stranger = socket.create_connection(("localhost", port))
        except OSError:
            continue
    stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
    found |= _meet(port, [1], [2])
    server.join(60)
    stranger.close()
    _close(found)


WATCH = """
import socket, sys, time
from azjax.training import peers
peers._SILENCE_SECONDS, peers._GRACE_SECONDS = 2.0, 2.0
watch = peers._Watch(0, {{3: socket.socket(fileno=int(sys.argv[1])), 4: socket.socket(fileno=int(sys.argv[2]))}})
{then}
time.sleep(60)
"""


@pytest.mark.parametrize(
    ("act", "then", "line"),
    [
        (lambda peer: peer.close(), "", "azjax: process 3 died,"),
        (lambda peer: peer.sendall(b"here\n"), "", "azjax: process 3 gave no sign of life for 2 seconds,"),
        (lambda peer: peer.sendall(b"here\nstopped\n"), "", "azjax: process 3 stopped,"),
        (lambda peer: peer.sendall(b"lost 1 died\n"), "", "azjax: process 1 died,"),
        # An error of its own is told instead.
        (
            lambda peer: peer.sendall(b"stopped\n"),
            "watch.fail(True); time.sleep(4); sys.exit('own error')",
            "own error",
        ),
    ],
    ids=["death", "silence", "stop", "told", "own"],
)
def test_a_lost_peer_ends_this_process_and_is_told_to_the_rest(act, then, line):
    (ours, lost), (others, witness) = socket.socketpair(), socket.socketpair()
    with ours, lost, others, witness:
        handed = [ours.fileno(), others.fileno()]
        command = [sys.executable, "-c", WATCH.format(then=then), *map(str, handed)]
        process = subprocess.Popen(command, pass_fds=handed, stderr=subprocess.PIPE, text=True)
        ours.close()
        others.close()
        witness.settimeout(0.2)
        told = []

        def live():
            """Says that it is there, and hears what it is told, until the other end is gone."""
            with contextlib.suppress(OSError):
                while told[-1:] != [b""]:
                    witness.sendall(b"here\n")
                    with contextlib.suppress(TimeoutError):
                        told.append(witness.recv(4096))

        thread = threading.Thread(target=live)
        thread.start()
        assert lost.recv(4)  # it has begun
        act(lost)
        _, err = process.communicate(timeout=60)
        thread.join()
    assert process.returncode == 1
    assert err.startswith(line), err
    assert len(err.splitlines()) == 1
    assert (b"lost " if "azjax" in line else b"stopped") in b"".join(told)
