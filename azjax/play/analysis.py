"""An engine that analyzes many positions at once: queries and answers are lines of JSON.

The form is that of KataGo's analysis engine (its docs/Analysis_Engine.md), with the same names for the same things.
Values are those of the player to move. Answers come in the order in which the searches end.
"""

import dataclasses
import functools
import json
import math
import queue
import threading
import time
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

import jax

from azjax.core.errors import InputError
from azjax.core.json_text import parse_json
from azjax.core.version import __version__
from azjax.evaluation.host_games import position_from_text, replay
from azjax.games.game import State
from azjax.play.lines import Stream
from azjax.play.ongoing_game import total_rewards
from azjax.play.search_pool import SearchPool, SearchRequest, SearchUpdate
from azjax.render.tree_nodes import NodeSummary, move_text, principal_nodes
from azjax.search.tree import ROOT

MAX_QUERY = 1024 * 1024  # characters
MAX_WAITING = 10_000  # positions whose searches have not ended

_MAX_LINES = 16  # read before they are answered
_COLORS = ("B", "W")  # as in the Go Text Protocol, black is player 0

Json: TypeAlias = dict[str, Any]


class _QueryError(InputError):
    """A query that is refused because of one of its fields."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(reason)
        self.field = field


@dataclasses.dataclass(frozen=True)
class _Query:
    """A query; see docs/engines.md."""

    id: str
    moves: tuple[str, ...]
    initial_position: str | None
    turns: tuple[int, ...]
    max_visits: int
    max_time: float
    with_visits: bool
    report_every: float


@dataclasses.dataclass(eq=False)
class _Search:
    """The search of one position of a query."""

    query: _Query
    turn: int
    state: State
    reported_at: float | None = None  # none before its first update
    request: SearchRequest | None = None


_Event: TypeAlias = str | tuple[_Search, SearchUpdate | Exception] | None
"""A line, an update of a search, or the end of the lines."""


class AnalysisEngine:
    """Answers queries until their end, and then waits for its searches.

    Args:
      name: of the agent.
      pool: runs the searches; it must be started.
      num_simulations: of a search whose query does not say `maxVisits`.
      seconds: of a search whose query does not say `maxTime`.
    """

    def __init__(self, name: str, pool: SearchPool, *, num_simulations: int, seconds: float = math.inf) -> None:
        pool.check_limits(num_simulations, seconds)
        self._name, self._pool, self._game = name, pool, pool.game
        self._num_simulations, self._seconds = num_simulations, seconds
        self._searches: dict[_Search, None] = {}  # that have not ended, in their order
        self._events: queue.SimpleQueue[_Event] = queue.SimpleQueue()
        self._failure: str | None = None  # what ended the pool
        self._unanswered = threading.Semaphore(_MAX_LINES)
        self._actions: dict[str, Callable[[Json], Json]] = {
            "query_version": lambda _: {"version": __version__},
            "query_models": lambda _: {"models": [{"name": name, "game": self._game.name}]},
            "terminate": self._terminate,
            "terminate_all": self._terminate,
        }

    def serve(self, lines: Iterable[str], output: Stream) -> None:
        """Reads queries and writes answers.

        Raises:
          InputError: at the end, if searches failed; their queries were answered with the error.
        """
        self._output = output
        threading.Thread(target=self._read, args=(lines,), name="queries", daemon=True).start()
        is_reading = True
        while is_reading or self._searches:
            event = self._events.get()
            if event is None:
                is_reading = False
            elif isinstance(event, str):
                self._unanswered.release()
                self._answer_line(event)
            else:
                self._report(*event)
        if self._failure is not None:
            raise InputError(f"searches failed: {self._failure}")

    def _read(self, lines: Iterable[str]) -> None:
        try:
            for line in lines:
                self._unanswered.acquire()
                self._events.put(line)
        finally:
            self._events.put(None)

    def _write(self, answer: Json) -> None:
        self._output.write(json.dumps(answer) + "\n")
        self._output.flush()

    def _answer_line(self, line: str) -> None:
        if not line.strip():
            return
        named: Json = {}
        try:
            if len(line) > MAX_QUERY:
                raise InputError(f"a query has at most {MAX_QUERY:,} characters")
            fields = _parse(line)
            named = {"id": fields["id"]}
            if "action" in fields:
                self._act(fields)
            else:
                self._start(self._query(fields))
        except _QueryError as error:
            self._write({"error": str(error), "field": error.field, **named})
        except InputError as error:
            self._write({"error": str(error), **named})

    def _act(self, fields: Json) -> None:
        action = fields["action"]
        if not isinstance(action, str) or action not in self._actions:
            raise _QueryError("action", f"unknown action {str(action)[:40]!r}; available: {', '.join(self._actions)}")
        self._write(fields | self._actions[action](fields))

    def _terminate(self, fields: Json) -> Json:
        wanted, turns = fields.get("terminateId"), fields.get("turnNumbers")
        is_all = fields["action"] == "terminate_all"
        if not (is_all or isinstance(wanted, str)):
            raise _QueryError("terminateId", "terminateId must be the id of a query")
        if turns is not None and not (isinstance(turns, list) and all(type(turn) is int for turn in turns)):
            raise _QueryError("turnNumbers", "turnNumbers must be a list of whole numbers")
        for search in list(self._searches):
            if (is_all or search.query.id == wanted) and (turns is None or search.turn in turns):
                if search.request is not None:
                    search.request.cancel()
                self._end(search, {"noResults": True})
        return {}

    def _query(self, fields: Json) -> _Query:
        """The query, after warnings about fields that mean nothing."""
        known = _Fields(fields)
        moves = known.get("moves", (), "a list of moves", _is_list_of(str))
        query = _Query(
            id=fields["id"],
            moves=tuple(moves),
            initial_position=known.get("initialPosition", None, "a position", lambda value: isinstance(value, str)),
            turns=tuple(known.get("analyzeTurns", [len(moves)], "a list of whole numbers", _is_list_of(int))),
            max_visits=known.get("maxVisits", self._num_simulations, "a whole number", _is_whole),
            max_time=known.get("maxTime", self._seconds, "a number of seconds above 0", _is_positive),
            with_visits=known.get("includePVVisits", False, "true or false", lambda value: isinstance(value, bool)),
            report_every=known.get("reportDuringSearchEvery", math.inf, "a number of seconds above 0", _is_positive),
        )
        if not 1 <= query.max_visits <= self._pool.max_simulations:
            raise _QueryError("maxVisits", f"maxVisits must be 1..{self._pool.max_simulations}, got {query.max_visits}")
        if not query.turns or len(set(query.turns)) < len(query.turns):
            raise _QueryError("analyzeTurns", "analyzeTurns must be one or more different turns")
        for turn in query.turns:
            if not 0 <= turn <= len(moves):
                raise _QueryError("analyzeTurns", f"after {len(moves)} moves a turn is 0..{len(moves)}, got {turn}")
        if len(self._searches) + len(query.turns) > MAX_WAITING:
            raise InputError(f"more than {MAX_WAITING:,} positions are waiting")
        for name in known.unknown:
            self._write({"warning": "unknown field", "field": name, "id": query.id})
        return query

    def _start(self, query: _Query) -> None:
        states = self._replay(query)
        for turn in query.turns:
            state = states[turn]
            search = _Search(query, turn, state)
            self._searches[search] = None
            if state.terminated:
                result = float(total_rewards(states[: turn + 1])[int(state.current_player)])
                self._end(search, {"rootInfo": _root_info(state, result, 0, is_proven=True), "moveInfos": []})
                continue
            search.request = self._pool.search(
                state,
                functools.partial(self._hear, search),
                num_simulations=query.max_visits,
                seconds=query.max_time,
            )

    def _hear(self, search: _Search, update: SearchUpdate | Exception) -> None:
        # Others would only fill the memory while nobody reads the output.
        if isinstance(update, Exception) or update.is_last or search.query.report_every < math.inf:
            self._events.put((search, update))

    def _replay(self, query: _Query) -> list[State]:
        game = self._game
        try:
            start = query.initial_position
            first = game.init(jax.random.key(0)) if start is None else position_from_text(game, start)
        except InputError as error:
            raise _QueryError("initialPosition", str(error)) from None
        try:
            states, _ = replay(game, first, query.moves)
        except InputError as error:
            raise _QueryError("moves", str(error)) from None
        return states

    def _report(self, search: _Search, update: SearchUpdate | Exception) -> None:
        if search not in self._searches:
            return  # it was terminated
        if isinstance(update, Exception):
            self._failure = " ".join(str(update).split())
            self._end(search, {"error": self._failure})
            return
        if update.nodes is None:
            return
        now = time.perf_counter()
        if search.reported_at is None:
            search.reported_at = now
        if not (update.is_last or now - search.reported_at >= search.query.report_every):
            return
        search.reported_at = now
        answer = self._analysis(search, update, update.nodes)
        if update.is_last:
            self._end(search, answer)
        else:
            self._write(_head(search, is_during=True) | answer)

    def _end(self, search: _Search, answer: Json) -> None:
        del self._searches[search]
        self._write(_head(search, is_during=False) | answer)

    def _analysis(self, search: _Search, update: SearchUpdate, nodes: dict[int, NodeSummary]) -> Json:
        root = nodes[ROOT]
        children = sorted((nodes[child] for child in root.children), key=lambda child: child.action != update.action)
        infos = []
        for order, child in enumerate(children):
            line = [child, *principal_nodes(nodes, child.number)]
            is_proven = child.bounds is not None and child.bounds[0] == child.bounds[1]
            info = {
                "move": move_text(nodes, self._game, child),
                "order": order,
                "visits": child.visits,
                **_value(child.bounds[0] if child.bounds is not None and is_proven else child.value),
                "prior": round(child.prior, 6),
                "isProven": is_proven,
                "pv": [move_text(nodes, self._game, node) for node in line],
            }
            infos.append(info | ({"pvVisits": [node.visits for node in line]} if search.query.with_visits else {}))
        info = _root_info(search.state, update.value, update.num_simulations, is_proven=update.is_proven)
        return {"rootInfo": info, "moveInfos": infos}


class _Fields:
    """The fields of a query, and which of them nobody asked for."""

    def __init__(self, fields: Json) -> None:
        self._fields = fields
        self.unknown = [name for name in fields if name != "id"]

    def get(self, name: str, default: Any, expected: str, is_valid: Callable[[Any], bool]) -> Any:
        """The value of a field, or `default` without it.

        Raises:
          _QueryError: it is not valid.
        """
        if name not in self._fields:
            return default
        self.unknown.remove(name)
        if not is_valid(self._fields[name]):
            raise _QueryError(name, f"{name} must be {expected}")
        return self._fields[name]


def _parse(line: str) -> Json:
    try:
        fields = parse_json(line)
    except ValueError as error:
        raise InputError(f"the line is not JSON: {error}") from None
    if not isinstance(fields, dict):
        raise InputError("a query must be a JSON object")
    if not isinstance(fields.get("id"), str):
        raise _QueryError("id", "id must be a text")
    return fields


def _is_list_of(kind: type) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, list) and all(type(each) is kind for each in value)


def _is_whole(value: Any) -> bool:
    return type(value) is int


def _is_positive(value: Any) -> bool:
    return type(value) in (int, float) and value > 0


def _head(search: _Search, *, is_during: bool) -> Json:
    return {"id": search.query.id, "turnNumber": search.turn, "isDuringSearch": is_during}


def _value(value: float) -> Json:
    """A value of -1..1, and as the expected result of 0..1, where a draw is a half."""
    return {"utility": round(value, 6), "winrate": round((1 + value) / 2, 6)}


def _root_info(state: State, value: float, visits: int, *, is_proven: bool) -> Json:
    color = _COLORS[int(state.current_player)]
    return {"currentPlayer": color, "visits": visits, **_value(value), "isProven": is_proven}
