"""Connections of the page's server: a limited number, each with limited time for the head of a request."""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

MAX_CONNECTIONS = 256
HEAD_SECONDS = 10.0


class BoundedProtocol(H11Protocol):
    """Closes connections beyond `MAX_CONNECTIONS`, and those whose next request has not begun within `HEAD_SECONDS`.

    uvicorn alone waits without end for the rest of a request line or of a header.
    """

    _too_late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:  # uvloop's transports are not those of asyncio
        """Waits for the first request."""
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            transport.close()
        self._wait_for_head()

    def data_received(self, data: bytes) -> None:
        """Stops waiting when a request has begun."""
        before = self.cycle
        super().data_received(data)
        if self.cycle is not before:
            self._stop_waiting()

    def on_response_complete(self) -> None:
        """Waits for the next request."""
        before = self.cycle
        super().on_response_complete()
        if self.cycle is before:  # else the next request was there already
            self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Stops waiting."""
        self._stop_waiting()
        super().connection_lost(exc)

    def _wait_for_head(self) -> None:
        self._stop_waiting()
        self._too_late = self.loop.call_later(HEAD_SECONDS, self.transport.close)

    def _stop_waiting(self) -> None:
        if self._too_late is not None:
            self._too_late.cancel()
            self._too_late = None
