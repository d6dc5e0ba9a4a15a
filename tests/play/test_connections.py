"""The server over real sockets."""

import asyncio
import contextlib
import socket
import threading
import time

import pytest

pytest.importorskip("uvicorn", reason="needs the extra play")
import uvicorn

from azjax.play import connections
from azjax.play.connections import BoundedProtocol

REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


async def _app(scope, receive, send):
    if scope["type"] == "http":
        if scope["path"] == "/slow":
            await asyncio.sleep(1.5)
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
        await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture
def port(monkeypatch):
    monkeypatch.setattr(connections, "HEAD_SECONDS", 1.0)
    config = uvicorn.Config(_app, http=BoundedProtocol, ws="none", port=0, log_level="error", lifespan="off")
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield server.servers[0].sockets[0].getsockname()[1]
    server.should_exit = True
    thread.join()


def _connect(port):
    return socket.create_connection(("127.0.0.1", port), timeout=20)


def _is_closed(connection):
    """Waits until the other side sends something or closes."""
    with contextlib.suppress(ConnectionResetError):
        return connection.recv(1000) == b""
    return True


def _is_answered(connection):
    """Reads one answer, whose head and body may come one after the other."""
    received = b""
    while not received.endswith(b"ok") and (more := connection.recv(1000)):
        received += more
    return received.endswith(b"ok")


def test_requests_on_one_connection_are_answered(port):
    with _connect(port) as connection:
        for _ in range(3):
            time.sleep(0.4)  # less than the limit each, and more together
            connection.sendall(REQUEST)
            assert _is_answered(connection)
        assert _is_closed(connection)


@pytest.mark.parametrize("sent", [b"", b"GET / HT", REQUEST[:-2], REQUEST + REQUEST[:20]])
def test_a_request_that_does_not_begin_in_time_closes_the_connection(port, sent):
    with _connect(port) as connection:
        connection.sendall(sent)
        if sent.startswith(REQUEST):
            assert _is_answered(connection)
        assert _is_closed(connection)


def test_an_answer_may_take_longer_than_the_limit(port):
    with _connect(port) as connection:
        connection.sendall(REQUEST.replace(b"/", b"/slow", 1))
        assert _is_answered(connection)


def test_bytes_that_trickle_in_gain_no_time(port):
    with _connect(port) as connection:
        for byte in b"GET / ":
            with contextlib.suppress(OSError):  # once the other side has closed
                connection.sendall(bytes([byte]))
            time.sleep(0.3)  # less than the limit
        connection.settimeout(0.1)
        assert _is_closed(connection)  # now, and not a while after the last byte


def test_there_is_a_largest_number_of_connections(port, monkeypatch):
    monkeypatch.setattr(connections, "MAX_CONNECTIONS", 3)
    monkeypatch.setattr(connections, "HEAD_SECONDS", 5.0)  # longer than all that follows
    with contextlib.ExitStack() as stack:
        held = [stack.enter_context(_connect(port)) for _ in range(3)]
        assert _is_closed(stack.enter_context(_connect(port)))
        held[0].sendall(REQUEST)
        assert _is_answered(held[0])
