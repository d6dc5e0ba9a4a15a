"""The server of the page, which is one file of several parts, and the JSON answers to its questions.

The page keeps the game, and sends it with every question; the server keeps no games. A search is answered in lines of
JSON while it runs.
"""

import asyncio
import collections
import contextlib
import ipaddress
import json
import logging
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import TypeAlias

import uvicorn
from rich.console import Console
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from azjax.agents import SearchSpec
from azjax.core.errors import FileError, InputError
from azjax.core.json_text import parse_json
from azjax.evaluation import Player, optimal_player, solve
from azjax.games.game import AnyGame, State
from azjax.games.protocols import NumberedGame
from azjax.play.book import Book
from azjax.play.connections import BoundedProtocol
from azjax.play.page_source import page_source
from azjax.play.search_pool import MAX_SIMULATIONS, SearchPool, SearchRequest, SearchUpdate
from azjax.play.session import Json, PlaySession, parse_game, value_lost

MAX_BODY = 64 * 1024  # bytes
BODY_SECONDS = 10.0
MAX_SEARCHES = 32  # of all visitors, running and waiting
LOCAL_HOSTS = ("127.0.0.1", "localhost", "[::1]")
_MAX_STATES = 20_000  # a game with more is not solved before the page opens
_MAX_NUMBERS = 20_000_000  # searching more of them for positions delays the page
_MAX_SECONDS = 1e9
_COMPILING: Json = {"waiting": "The search is being compiled"}
_COMPILING_PLAYER: Json = {"waiting": "The player is being compiled"}
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

_Updates: TypeAlias = asyncio.Queue[SearchUpdate | Exception]


def serve(
    game: AnyGame,
    name: str,
    spec: SearchSpec,
    players: Mapping[str, Player],
    *,
    facts: Mapping[str, str],
    book: Book | None,
    exact: Player | None,
    num_simulations: int,
    host: str,
    port: int,
    console: Console,
) -> None:
    """Serves the page until Ctrl-C.

    Args:
      game: the game.
      name: name of the agent, for people.
      spec: evaluator and parameters of the searches.
      players: players that choose a move at once, by level.
      facts: what people should know of the agent, by label.
      book: games that were played.
      exact: the optimal player of a table of values; None to solve the game if it is small.
      num_simulations: the page's first choice.
      host: the address.
      port: 0 for any free one.
      console: prints the address of the page.

    Raises:
      FileError: the address is taken, or not an address of this machine.
    """
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except (OSError, TypeError) as error:  # of some host names that are none
            reason = getattr(error, "strerror", None) or error
            raise FileError(f"the page cannot be served at {host}, port {port}: {reason}") from error
        with console.status("opening the page"):
            limit = max(MAX_SIMULATIONS, num_simulations)
            pool = SearchPool(spec.policy, spec.params, spec.hyper, max_simulations=limit)
            exact = _optimal_player(game) if exact is None else exact
            session = PlaySession(game, name, pool, players, exact, num_simulations, facts, book)
            shown = f"[{host}]" if ":" in host else host
            # A server on all addresses is reached by numbers, which no foreign host name resolves to.
            app = make_app(session, (*LOCAL_HOSTS, shown), any_number=host in ("0.0.0.0", "::"))
        listening.listen()  # before the address is printed, so that no visitor is refused
        console.print(f"http://{shown}:{listening.getsockname()[1]} (Ctrl-C ends)", soft_wrap=True)
        config = uvicorn.Config(app, http=BoundedProtocol, ws="none", log_level="error", timeout_graceful_shutdown=1)
        pool.start()
        server = uvicorn.Server(config)
        errors = logging.getLogger("uvicorn.error")

        def is_error(_: logging.LogRecord) -> bool:
            return not server.should_exit  # answers that end with the server are none

        errors.addFilter(is_error)
        with contextlib.suppress(KeyboardInterrupt):
            server.run(sockets=[listening])
        errors.removeFilter(is_error)
        with console.status("ending; a search that is being compiled is waited for"):
            pool.close()


def make_app(session: PlaySession, hosts: tuple[str, ...] = LOCAL_HOSTS, *, any_number: bool = False) -> ASGIApp:
    """The server as an ASGI application.

    Args:
      session: answers the questions.
      hosts: names of the server.
      any_number: whether every numeric address is a name of the server too.
    """
    page = page_source({"game": session.describe(), "position": session.position({})})
    searches = _OpenSearches()

    async def show_page(request: Request) -> Response:
        del request
        return HTMLResponse(page, headers=_HEADERS)

    def answer(method: Callable[[Json], Json]) -> Callable[[Request], Awaitable[Response]]:
        async def respond(request: Request) -> Response:
            return _json(await run_in_threadpool(method, await _body(request)))

        return respond

    async def think(request: Request) -> Response:
        question = await _body(request)
        level, (start, actions) = session.level(question), parse_game(question)
        state = await run_in_threadpool(session.running_state, start, actions)
        if level in session.players:
            return _stream(choice(level, question))
        updates, request_search = _searches(session, question)
        search = request_search(state)

        async def lines() -> AsyncIterator[Json]:
            with searches.add(updates):
                try:
                    if not session.pool.is_compiled:
                        yield _COMPILING
                    is_last = False
                    while not is_last:
                        update = await _next(updates)
                        yield await run_in_threadpool(session.show_update, state, actions, update)
                        is_last = update.is_last
                finally:
                    search.cancel()

        return _stream(lines())

    async def choice(level: str, question: Json) -> AsyncIterator[Json]:
        if level not in session.compiled:
            yield _COMPILING_PLAYER
        yield await run_in_threadpool(session.choose_move, question)

    async def analyze(request: Request) -> Response:
        question = await _body(request)
        states = await run_in_threadpool(session.states, *parse_game(question))
        updates, request_search = _searches(session, question)

        async def value_of(state: State) -> tuple[float, int | None, bool]:
            """The value for the player to move, the best action, and whether they are the true ones."""
            if state.terminated:
                return 0.0, None, True
            if (known := await run_in_threadpool(session.exact_value, state)) is not None:
                return *known, True
            search = request_search(state)
            try:
                while not (update := await _next(updates)).is_last:
                    pass
            finally:
                search.cancel()
            return update.value, update.action, False

        async def lines() -> AsyncIterator[Json]:
            before, best, was_exact = 0.0, None, True
            with searches.add(updates):
                if session.exact is None and not session.pool.is_compiled:
                    yield _COMPILING
                for ply, state in enumerate(states):
                    value, action, is_exact = await value_of(state)
                    if ply:
                        loss = value_lost(states[ply - 1], state, before, value)
                        mover = int(states[ply - 1].current_player)
                        told: Json = {"ply": ply - 1, "mover": mover, "value": before, "loss": loss, "best": best}
                        yield told | {"exact": was_exact and is_exact}
                    before, best, was_exact = value, action, is_exact

        return _stream(lines())

    questions = {
        "position": answer(session.position),
        "setup": answer(session.set_up),
        "edit": answer(session.edit),
        "record": answer(session.record),
        "load": answer(session.load),
        "think": think,
        "analyze": analyze,
    }
    routes = [Route("/", show_page)]
    routes += [Route(f"/{name}", question, methods=["POST"]) for name, question in questions.items()]
    handlers = {InputError: _refuse, ClientDisconnect: _leave, Exception: _fail}
    return _Guard(Starlette(routes=routes, exception_handlers=handlers), hosts, any_number)


def _optimal_player(game: AnyGame) -> Player | None:
    """The optimal player of a small game."""
    if isinstance(game, NumberedGame) and not 0 < game.num_position_numbers <= _MAX_NUMBERS:
        return None  # 0: there are too many to number
    try:
        return optimal_player(solve(game, max_states=_MAX_STATES))
    except InputError:
        return None


class _OpenSearches:
    """The searches in progress, oldest first. One above `MAX_SEARCHES` closes the oldest."""

    def __init__(self) -> None:
        self._open: collections.OrderedDict[int, _Updates] = collections.OrderedDict()

    @contextlib.contextmanager
    def add(self, updates: _Updates) -> Iterator[None]:
        while len(self._open) >= MAX_SEARCHES:
            _, oldest = self._open.popitem(last=False)
            oldest.put_nowait(InputError("closed: too many people search at once"))
        self._open[id(updates)] = updates
        try:
            yield
        finally:
            self._open.pop(id(updates), None)


class _Guard:
    """Refuses requests from other sites (a foreign Host, as in DNS rebinding, or Origin) and bodies of other types."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], any_number: bool) -> None:
        self._app, self._hosts, self._any_number = app, {host.lower() for host in hosts}, any_number

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = self._refusal(Request(scope)) if scope["type"] == "http" else None
        await (self._app if refusal is None else refusal)(scope, receive, send)

    def _refusal(self, request: Request) -> Response | None:
        # Browsers write the names of hosts in lower case.
        host, origin = request.headers.get("host", "").lower(), request.headers.get("origin")
        name = host if host.endswith("]") else host.rpartition(":")[0] or host
        if not (name in self._hosts or (self._any_number and _is_number(name))):
            return _json({"error": f"unknown host {host[:100]!r}"}, 400)
        if origin is not None and origin.lower() not in (f"http://{host}", f"https://{host}"):
            return _json({"error": f"foreign origin {origin[:100]!r}"}, 403)
        if request.method == "POST" and request.headers.get("content-type", "").split(";")[0] != "application/json":
            return _json({"error": "the body must be application/json"}, 415)
        return None


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


class _BodyTooLargeError(InputError):
    """A body above `MAX_BODY`."""


class _BodyTooSlowError(InputError):
    """A body that took longer than `BODY_SECONDS`."""


async def _body(request: Request) -> Json:
    """The question.

    Raises:
      InputError: the body is not a JSON object, above `MAX_BODY`, or slower than `BODY_SECONDS`.
    """
    body = b""
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY:
                    raise _BodyTooLargeError(f"the body may have {MAX_BODY:,} bytes")
    except TimeoutError:
        raise _BodyTooSlowError(f"the body must be there within {BODY_SECONDS:g} s") from None
    try:
        question = parse_json(body)
    except ValueError:
        raise InputError("the body is not JSON") from None
    if not isinstance(question, dict):
        raise InputError("the body must be a JSON object")
    return question


async def _next(updates: _Updates) -> SearchUpdate:
    """The next update.

    Raises:
      Exception: what ended the search.
    """
    update = await updates.get()
    if isinstance(update, Exception):
        raise update
    return update


def _searches(session: PlaySession, question: Json) -> tuple[_Updates, Callable[[State], SearchRequest]]:
    """A queue of updates, and a function that requests a search whose updates go there."""
    loop, updates = asyncio.get_running_loop(), _Updates()
    num_simulations = question.get("simulations", session.pool.max_simulations)
    seconds = question.get("seconds")
    if type(num_simulations) is not int or not isinstance(seconds, int | float | None):
        raise InputError("simulations and seconds must be numbers")
    limit = float("inf") if seconds is None else float(min(seconds, _MAX_SECONDS))
    session.pool.check_limits(num_simulations, limit)  # before the answer begins

    def report(update: SearchUpdate | Exception) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(updates.put_nowait, update)

    def request_search(state: State) -> SearchRequest:
        return session.pool.search(state, report, num_simulations=num_simulations, seconds=limit)

    return updates, request_search


def _stream(answers: AsyncIterator[Json]) -> Response:
    async def lines() -> AsyncIterator[str]:
        try:
            async for answer in answers:
                yield json.dumps(answer) + "\n"
        except Exception as error:
            yield json.dumps({"error": _reason(error)}) + "\n"

    return StreamingResponse(lines(), media_type="application/x-ndjson", headers=_HEADERS)


def _json(answer: Json, status: int = 200) -> Response:
    return Response(json.dumps(answer), status, headers=_HEADERS, media_type="application/json")


async def _refuse(request: Request, error: Exception) -> Response:
    del request
    status = 413 if isinstance(error, _BodyTooLargeError) else 408 if isinstance(error, _BodyTooSlowError) else 400
    return _json({"error": str(error)}, status)


async def _fail(request: Request, error: Exception) -> Response:
    del request
    return _json({"error": _reason(error)}, 500)


async def _leave(request: Request, error: Exception) -> Response:
    """Nobody reads the answer."""
    del request, error
    return Response(status_code=499)


def _reason(error: Exception) -> str:
    """What people read of an error, in one line."""
    if "RESOURCE_EXHAUSTED" in str(error) or isinstance(error, MemoryError):
        return "the memory ran out"
    reason = " ".join(str(error).split())
    return reason if isinstance(error, InputError) else f"{type(error).__name__}: {reason}"
