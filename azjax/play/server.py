"""The page on which people play: a server of one static page and of what it asks for.

The page keeps the game, which is a start and actions, and sends it with every question; the server keeps no games. It
answers in JSON, and searches in lines of JSON while they go on.
"""

import asyncio
import collections
import contextlib
import ipaddress
import json
import queue
import socket
from collections.abc import AsyncIterator, Callable, Mapping
from importlib import resources
from typing import Any

import jax
import uvicorn
from rich.console import Console
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request
from starlette.responses import HTMLResponse, JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from azjax.agents import Mind
from azjax.core.errors import FileError, InputError
from azjax.evaluation import Player, optimal_player, solve
from azjax.games.game import Game
from azjax.games.protocols import player_names
from azjax.play.table import Table, game_of, given_away
from azjax.play.thinking import MAX_SIMULATIONS, Thinker, Thought
from azjax.render.picture import svg

MAX_BODY = 64 * 1024  # bytes
MAX_SESSIONS = 32  # searches at once
_MAX_STATES = 20_000  # of games that are solved while the page gets ready
_HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; "
    "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class _Sessions:
    """The searches that go on, oldest first; one too many ends the oldest."""

    def __init__(self) -> None:
        self._ends: collections.OrderedDict[object, Callable[[], None]] = collections.OrderedDict()

    @contextlib.contextmanager
    def one_more(self, end: Callable[[], None]) -> Any:
        while len(self._ends) >= MAX_SESSIONS:
            self._ends.popitem(last=False)[1]()
        name = object()
        self._ends[name] = end
        try:
            yield
        finally:
            self._ends.pop(name, None)


def serve(
    game: Game,
    name: str,
    mind: Mind,
    players: Mapping[str, Player],
    *,
    num_simulations: int,
    host: str,
    port: int,
    console: Console,
) -> None:
    """Serves the page until Ctrl-C.

    Args:
      game: what is played; it draws itself.
      name: of the agent, for people.
      mind: what searches ask.
      players: who moves at once, by level.
      num_simulations: of searches, unless the page is asked for others.
      host: the address.
      port: 0 for any that is free.
      console: told where the page is.

    Raises:
      ValueError: the game has no picture.
      OSError: the address is taken, or not this machine's.
    """
    try:
        svg(game, game.init(jax.random.key(0)))
    except NotImplementedError as error:
        raise InputError(f"the page draws the board, and {error}") from None
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listening:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listening.bind((host, port))
        except OSError as error:
            raise FileError(f"the page cannot be served at {host}, port {port}: {error.strerror or error}") from error
        with console.status("compiling the search"):
            most = max(MAX_SIMULATIONS, num_simulations)
            thinker = Thinker(game, mind.evaluator, mind.params, c_puct=mind.c_puct, max_simulations=most)
            thinker.start()
            table = Table(game, name, thinker, players, _solved(game), num_simulations)
            _warm_up(table)
        shown = f"[{host}]" if ":" in host else host
        listening.listen()  # before it is told, so that nobody is refused
        console.print(f"http://{shown}:{listening.getsockname()[1]} (Ctrl-C ends)", soft_wrap=True)
        # Whoever listens on all addresses is reached by numbers, which no foreign name stands for.
        hosts = ("127.0.0.1", "localhost", "[::1]", shown)
        app = make_app(table, hosts, any_number=host in ("0.0.0.0", "::"))
        config = uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1)
        with contextlib.suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[listening])
        thinker.close()


def _warm_up(table: Table) -> None:
    """Asks everything once, so that all is compiled when the first person does."""
    thoughts = queue.SimpleQueue[Thought]()
    state = table.running(None, ())
    table.position({})
    table.thinker.search(state, thoughts.put, num_simulations=1)
    table.thought(state, (), thoughts.get())
    for level in table.players:
        table.judged({"level": level})


def _solved(game: Game) -> Player | None:
    """Best play, where the game is soon solved."""
    try:
        return optimal_player(solve(game, max_states=_MAX_STATES))
    except ValueError:
        return None


def make_app(
    table: Table, hosts: tuple[str, ...] = ("127.0.0.1", "localhost", "[::1]"), *, any_number: bool = False
) -> ASGIApp:
    """The server.

    Args:
      table: what is played.
      hosts: names under which it may be reached.
      any_number: and under every numeric address.
    """
    page = resources.files("azjax.play").joinpath("page.html").read_text(encoding="utf-8")
    sessions = _Sessions()

    async def show_page(request: Request) -> Response:
        del request
        return HTMLResponse(page, headers=_HEADERS)

    async def show_game(request: Request) -> Response:
        del request
        game = table.game
        return _json(
            {
                "game": game.name,
                "agent": table.name,
                "players": player_names(game),
                "levels": table.levels,
                "most": table.thinker.max_simulations,
                "simulations": table.num_simulations,
                "pieces": game.piece_names,
                "exact": table.exact is not None,
            }
        )

    def answer(question: Callable[[dict[str, Any]], dict[str, Any]]) -> Callable[[Request], Any]:
        async def respond(request: Request) -> Response:
            return _json(await run_in_threadpool(question, await _body(request)))

        return respond

    async def think(request: Request) -> Response:
        asked = await _body(request)
        if table.level_of(asked) in table.players:
            return _lines(_once(await run_in_threadpool(table.judged, asked)))
        start, actions = game_of(asked)
        state = await run_in_threadpool(table.running, start, actions)
        thoughts, ask = _searches(table, asked)
        search = ask(state)

        async def lines() -> AsyncIterator[str]:
            with sessions.one_more(lambda: thoughts.put_nowait(None)):
                try:
                    while (thought := await thoughts.get()) is not None:
                        yield _line(await run_in_threadpool(table.thought, state, actions, thought))
                        if thought.is_last:
                            return
                    yield _line({"error": "closed: too many people search at once"})
                finally:
                    search.cancel()

        return _lines(lines())

    async def analyse(request: Request) -> Response:
        asked = await _body(request)
        start, actions = game_of(asked)
        states = await run_in_threadpool(table.states, start, actions)
        thoughts, ask = _searches(table, asked)

        async def lines() -> AsyncIterator[str]:
            before = 0.0
            with sessions.one_more(lambda: thoughts.put_nowait(None)):
                for ply, state in enumerate(states):
                    value = 0.0
                    if not state.terminated:
                        if table.exact is not None:
                            value = await run_in_threadpool(table.exact_value, state)
                        else:
                            search = ask(state)
                            try:
                                while (thought := await thoughts.get()) is not None and not thought.is_last:
                                    pass
                            finally:
                                search.cancel()
                            if thought is None:
                                yield _line({"error": "closed: too many people search at once"})
                                return
                            value = thought.value
                    if ply:
                        loss = given_away(states[ply - 1], state, before, value)
                        yield _line({"ply": ply - 1, "value": before, "loss": loss})
                    before = value

        return _lines(lines())

    routes = [Route("/", show_page), Route("/game", show_game)]
    questions = {
        "position": answer(table.position),
        "setup": answer(table.set_up),
        "edit": answer(table.edited),
        "record": answer(table.record),
        "load": answer(table.load),
        "think": think,
        "analyse": analyse,
    }
    routes += [Route(f"/{name}", question, methods=["POST"]) for name, question in questions.items()]
    return _Guard(
        Starlette(routes=routes, exception_handlers={ValueError: _refuse, Exception: _fail}), hosts, any_number
    )


class _Guard:
    """Turns away who calls from another place: a foreign Host (DNS rebinding) or Origin, and what is no JSON."""

    def __init__(self, app: ASGIApp, hosts: tuple[str, ...], any_number: bool) -> None:
        self._app, self._hosts, self._any_number = app, hosts, any_number

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        refusal = None
        name = _name_of(host)
        if not (name in self._hosts or (self._any_number and _is_number(name))):
            refusal = _json({"error": f"unknown host {host[:100]!r}"}, 400)
        elif origin is not None and origin not in (f"http://{host}", f"https://{host}"):
            refusal = _json({"error": f"foreign origin {origin[:100]!r}"}, 403)
        elif request.method == "POST" and request.headers.get("content-type", "").split(";")[0] != "application/json":
            refusal = _json({"error": "the body must be application/json"}, 415)
        await (self._app if refusal is None else refusal)(scope, receive, send)


def _name_of(host: str) -> str:
    """Without the port."""
    return host if host.endswith("]") else host.rpartition(":")[0] or host


def _is_number(name: str) -> bool:
    try:
        ipaddress.ip_address(name.strip("[]"))
    except ValueError:
        return False
    return True


async def _body(request: Request) -> dict[str, Any]:
    """The question.

    Raises:
      ValueError: no JSON object.
      _TooLargeError: more than `MAX_BODY` bytes.
    """
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > MAX_BODY:
            raise _TooLargeError(f"the body may have {MAX_BODY:,} bytes")
    try:
        asked = json.loads(body)
    except (ValueError, RecursionError):
        raise InputError("the body is no JSON") from None
    if not isinstance(asked, dict):
        raise InputError("the body must be a JSON object")
    return asked


class _TooLargeError(ValueError):
    """A body beyond `MAX_BODY`."""


def _searches(table: Table, asked: dict[str, Any]) -> tuple[asyncio.Queue, Callable[[Any], Any]]:
    """A queue of thoughts, and what asks for a search of a state whose thoughts go there."""
    loop, thoughts = asyncio.get_running_loop(), asyncio.Queue[Thought | None]()
    num_simulations, seconds = asked.get("simulations", table.thinker.max_simulations), asked.get("seconds")
    if type(num_simulations) is not int or not isinstance(seconds, int | float | None):
        raise InputError("simulations and seconds must be numbers")

    def tell(thought: Thought) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(thoughts.put_nowait, thought)

    def ask(state: Any) -> Any:
        limit = float("inf") if seconds is None else float(seconds)
        return table.thinker.search(state, tell, num_simulations=num_simulations, seconds=limit)

    return thoughts, ask


async def _once(told: dict[str, Any]) -> AsyncIterator[str]:
    yield _line(told)


def _line(told: dict[str, Any]) -> str:
    return json.dumps(told) + "\n"


def _lines(lines: AsyncIterator[str]) -> Response:
    return StreamingResponse(lines, media_type="application/x-ndjson", headers=_HEADERS)


def _json(told: dict[str, Any], status: int = 200) -> Response:
    return JSONResponse(told, status, headers=_HEADERS)


async def _refuse(request: Request, error: Exception) -> Response:
    del request
    return _json({"error": str(error)}, 413 if isinstance(error, _TooLargeError) else 400)


async def _fail(request: Request, error: Exception) -> Response:
    del request
    if isinstance(error, ClientDisconnect):
        return Response(status_code=499)
    return _json({"error": f"{type(error).__name__}: {error}"}, 500)
