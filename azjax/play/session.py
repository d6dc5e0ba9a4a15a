"""Answers to the questions of the page: positions, records, and what agents make of them.

A question holds the whole game, as its start and its actions. The session keeps no game, only recent positions.
"""

import collections
import functools
import math
import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeAlias, TypeGuard

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float32

from azjax.agents import NUM_SIMULATIONS
from azjax.core.errors import InputError
from azjax.evaluation import GameRecord, Player, act, choose
from azjax.evaluation.host_games import host_step, position_from_text, text_game
from azjax.games.game import AnyGame, State
from azjax.games.pictures import has_picture
from azjax.games.protocols import (
    BoardGame,
    EditableGame,
    TextGame,
    action_to_text,
    examples_of,
    legal_actions,
    player_names,
    rules_for_people,
)
from azjax.games.registry import options_of
from azjax.play.book import Book
from azjax.play.ongoing_game import batch_of_one, total_rewards
from azjax.play.search_pool import SearchPool, SearchUpdate
from azjax.render.picture import svg
from azjax.render.tree_nodes import NodeSummary, most_visited, move_text, principal_nodes
from azjax.search.tree import ROOT

Json: TypeAlias = dict[str, object]
"""A question of the page (of unchecked content), or an answer."""

_SHOWN_MOVES = 8
_SHOWN_NODES = 40
_MAX_POSITIONS = 4096  # kept
_MAX_EDITS = 1024


class PlaySession:
    """A game, the agents that play it, and the answers to questions about it.

    The methods that take a question raise `InputError` with a reason for people.

    Args:
      game: the game.
      name: name of the agent, for people.
      pool: runs the searches; it must be started.
      players: players that choose a move at once, by level. The level `search` is the pool.
      exact: the optimal player of a solved game or of solved endings.
      num_simulations: the page's first choice.
      facts: what people should know of the agent, by label.
      book: games that were played.
    """

    def __init__(
        self,
        game: AnyGame,
        name: str,
        pool: SearchPool,
        players: Mapping[str, Player],
        exact: Player | None = None,
        num_simulations: int = NUM_SIMULATIONS,
        facts: Mapping[str, str] | None = None,
        book: Book | None = None,
    ) -> None:
        self.game, self.name, self.pool, self.players, self.exact = game, name, pool, players, exact
        self.num_simulations, self.facts, self.book = num_simulations, dict(facts or {}), book
        self.compiled: set[str] = set()  # the levels of `players` that have chosen a move
        self._positions: collections.OrderedDict[Hashable, State] = collections.OrderedDict()
        self._lock = threading.Lock()

    @property
    def levels(self) -> list[str]:
        """The levels, from weak to strong."""
        return ["search", *self.players] if "hard" in self.players else [*self.players, "search"]

    def describe(self) -> Json:
        """The game, the levels, and what the page can offer."""
        game = self.game
        rules, notation = rules_for_people(game)
        examples = examples_of(game) if has_picture(game) else ()
        has_board = isinstance(game, BoardGame) and has_picture(game)
        can_edit = has_board and isinstance(game, EditableGame) and isinstance(game, TextGame)
        return {
            "game": game.name,
            "options": _options_of(game),
            "agent": self.name,
            "facts": self.facts,
            "rules": rules,
            "notation": notation,
            "examples": [
                {"svg": svg(game, position_from_text(game, text)), "shows": shows} for text, shows in examples
            ],
            "players": player_names(game),
            "levels": self.levels,
            "most": self.pool.max_simulations,
            "simulations": self.num_simulations,
            "board": has_board,
            "rows_from_top": isinstance(game, BoardGame) and game.rows_from_top,
            "pieces": game.piece_names if can_edit and isinstance(game, EditableGame) else (),
            "book": self.book.games if self.book else 0,
        }

    def level(self, question: Json) -> str:
        """The level that is asked."""
        level = question.get("level")
        if not isinstance(level, str) or level not in self.levels:
            raise InputError(f"unknown level {str(level)[:40]!r}; available: {', '.join(self.levels)}")
        return level

    def states(self, start: str | None, actions: Sequence[int]) -> list[State]:
        """The positions of a game, one more than its actions.

        Raises:
          InputError: the rules do not allow the start or an action.
        """
        states = [self._cached(start, functools.partial(self._first_state, start))]
        for ply, action in enumerate(actions):
            step = functools.partial(self._step, states[ply], action, ply)
            states.append(self._cached((start, *actions[: ply + 1]), step))
        return states

    def running_state(self, start: str | None, actions: Sequence[int]) -> State:
        """The last position of a game that is not over."""
        state = self.states(start, actions)[-1]
        if state.terminated:
            raise InputError("the game is over")
        return state

    def position(self, question: Json) -> Json:
        """The last position of a game: its picture and text, the legal moves, and the player to move or the result."""
        start, actions = parse_game(question)
        states = self.states(start, actions)
        state, game, moves = states[-1], self.game, self._moves(states, actions)
        return {
            "svg": self._picture(state, actions),
            "text": game.to_text(state) if isinstance(game, TextGame) else " ".join([*(start or "").split(), *moves]),
            "legal": [self._describe_move(state, action) for action in legal_actions(game, state)],
            "book": [move._asdict() for move in self.book.moves(state)] if self.book else [],
            "moves": moves,
            "movers": [int(each.current_player) for each in states],
            "over": bool(state.terminated),
            "rewards": total_rewards(states).tolist(),
        }

    def set_up(self, question: Json) -> Json:
        """The position with a given text."""
        text = question.get("text")
        if not isinstance(text, str):
            raise InputError("text must be a position")
        game, state = self.game, position_from_text(self.game, text.strip())
        return {"start": game.to_text(state) if isinstance(game, TextGame) else " ".join(text.split())}

    def edit(self, question: Json) -> Json:
        """The last position of a game with some pieces replaced: its picture, its text, and why it is impossible.

        `pieces` are pairs of a square and an index of `EditableGame.piece_names`, placed in order. `mover`
        (optional) is the player to move, in games whose pieces do not decide that.
        """
        game, rules = self.game, text_game(self.game)
        pieces, mover = question.get("pieces"), question.get("mover")
        if not isinstance(game, EditableGame):
            raise InputError(f"{self.game.name} has no pieces to place")
        limits = math.prod(self.game.observation_shape[:2]), len(game.piece_names)
        if not (isinstance(pieces, list) and len(pieces) <= _MAX_EDITS and all(_is_pair(p, limits) for p in pieces)):
            raise InputError(f"pieces must be at most {_MAX_EDITS} pairs of a square and a piece")
        if mover is not None and not (type(mover) is int and mover in (0, 1)):
            raise InputError("mover must be 0, 1 or null")
        state: State = jax.tree.map(jnp.asarray, self.states(*parse_game(question))[-1])
        for square, piece in pieces:
            state = game.with_piece(state, square, piece)
        text, problem = rules.to_text(state), None
        if mover is not None:
            other: State = game.with_mover(state, mover)
            # In some games the pieces decide who moves. The text is then the same.
            other_text = rules.to_text(other)
            state, text = (other, other_text) if other_text != text else (state, text)
        try:
            text = rules.to_text(state := rules.from_text(text))
        except InputError as error:
            problem = str(error)
        return {"svg": svg(self.game, state), "text": text, "wrong": problem, "mover": int(state.current_player)}

    def record(self, question: Json) -> Json:
        """The game as a line of JSON; see `azjax.evaluation.GameRecord`.

        `result` (optional) is that of a game which the rules have not ended: its `winner` (0, 1, or null for a draw)
        and its `end`. `opening_plies` (optional) is the number of the first actions that were drawn at random.
        """
        start, actions = parse_game(question)
        result, opening_plies = question.get("result"), question.get("opening_plies", 0)
        names = question.get("players", ["first", "second"])
        if not (isinstance(names, list) and len(names) == 2 and all(isinstance(name, str) for name in names)):
            raise InputError("players must be two names")
        if type(opening_plies) is not int or not 0 <= opening_plies <= len(actions):
            raise InputError(f"opening_plies must be 0..{len(actions)}, the number of moves, got {opening_plies!r}")
        states = self.states(start, actions)
        first, second = total_rewards(states).tolist()
        rewards, end = ((first, second), None) if states[-1].terminated else _given_result(result)
        moves, players = tuple(self._moves(states, actions)), (names[0], names[1])
        return {"line": GameRecord(self.game, players, moves, rewards, start, end, opening_plies).to_json()}

    def load(self, question: Json) -> Json:
        """The game of a line of JSON."""
        line = question.get("line")
        if not isinstance(line, str):
            raise InputError("line must be a game as a line of JSON")
        record = GameRecord.from_json(line, self.game)
        _, actions = record.replay()
        result: Json | None = None
        if record.end is not None and record.rewards is not None:
            sign = np.sign(record.rewards[0])
            result = {"winner": None if sign == 0 else int(sign < 0), "end": record.end}
        return {
            "start": record.start,
            "actions": actions,
            "result": result,
            "players": record.players,
            "opening_plies": record.opening_plies,
        }

    def choose_move(self, question: Json) -> Json:
        """The move of a player that chooses at once, in the form of the last update of a search."""
        start, actions = parse_game(question)
        state = self.running_state(start, actions)
        level, key = self.level(question), jax.random.key(np.random.default_rng().integers(2**32))
        chosen, choice, _ = jax.device_get(act(self.players[level], key, batch_of_one(state)))
        self.compiled.add(level)
        value = None if np.isnan(choice.value[0]) else float(choice.value[0])
        answer: Json = {"simulations": 0, "value": value, "action": int(chosen[0]), "last": True}
        return answer | self._show_policy(state, actions, choice.preferences[0])

    def exact_value(self, state: State) -> tuple[float, int] | None:
        """The true value of a position for the player to move, and a best action; None where nobody knows them."""
        if self.exact is None:
            return None
        choice = jax.device_get(choose(self.exact, jax.random.key(0), batch_of_one(state)))
        value = float(choice.value[0])
        return None if math.isnan(value) else (value, int(np.argmax(choice.preferences[0])))

    def show_update(self, state: State, actions: Sequence[int], update: SearchUpdate) -> Json:
        """An update of a search, for the page."""
        answer: Json = {
            "simulations": update.num_simulations,
            "value": update.value,
            "proven": update.is_proven,
            "action": update.action,
            "last": update.is_last,
            **self._show_policy(state, actions, update.policy),
        }
        if (nodes := update.nodes) is not None:
            answer["variation"] = [move_text(nodes, self.game, node) for node in principal_nodes(nodes)]
            answer["tree"] = self._subtree(nodes, nodes[ROOT], set(most_visited(nodes, _SHOWN_NODES)))
        return answer

    def _cached(self, key: Hashable, make: Callable[[], State]) -> State:
        with self._lock:
            if key in self._positions:
                self._positions.move_to_end(key)
                return self._positions[key]
        state = make()
        with self._lock:
            self._positions[key] = state
            while len(self._positions) > _MAX_POSITIONS:
                self._positions.popitem(last=False)
        return state

    def _first_state(self, start: str | None) -> State:
        state = self.game.init(jax.random.key(0)) if start is None else position_from_text(self.game, start)
        host_state: State = jax.tree.map(np.asarray, state)
        return host_state

    def _step(self, state: State, action: int, ply: int) -> State:
        if action not in legal_actions(self.game, state):
            raise InputError(f"action {ply + 1}: {action} is not a legal action there")
        following: State = host_step(self.game, state, action)
        return following

    def _describe_move(self, state: State, action: int) -> Json:
        """A legal move: its text, its squares, and where it is known its true value for the player to move."""
        game = self.game
        squares = game.action_squares(state, action) if isinstance(game, BoardGame) else ()
        move: Json = {"action": action, "move": action_to_text(game, state, action), "squares": squares}
        if self.exact is None:
            return move
        after: State = host_step(game, state, action)
        known = (0.0, 0) if after.terminated else self.exact_value(after)
        return move if known is None else {**move, "exact": returned_value(state, after, known[0])}

    def _moves(self, states: Sequence[State], actions: Sequence[int]) -> list[str]:
        return [action_to_text(self.game, state, action) for state, action in zip(states, actions, strict=False)]

    def _picture(
        self, state: State, actions: Sequence[int], policy: Float32[np.ndarray, "A"] | None = None
    ) -> str | None:
        if not has_picture(self.game):
            return None
        return svg(self.game, state, policy=policy, last_action=actions[-1] if actions else None)

    def _show_policy(self, state: State, actions: Sequence[int], policy: Float32[np.ndarray, "A"]) -> Json:
        likeliest = [action for action in np.argsort(-policy)[:_SHOWN_MOVES].tolist() if policy[action] > 0]
        return {
            "svg": self._picture(state, actions, policy),
            "policy": [
                {"action": action, "move": action_to_text(self.game, state, action), "share": float(policy[action])}
                for action in likeliest
            ],
        }

    def _subtree(self, nodes: Mapping[int, NodeSummary], node: NodeSummary, shown: set[int]) -> Json:
        return {
            "move": move_text(nodes, self.game, node),
            "visits": node.visits,
            "value": node.value,
            "below": [self._subtree(nodes, nodes[child], shown) for child in node.children if child in shown],
        }


def parse_game(question: Json) -> tuple[str | None, tuple[int, ...]]:
    """Start and actions of a question.

    Raises:
      InputError: they have another type.
    """
    start, actions = question.get("start"), question.get("actions", [])
    if not isinstance(start, str | None):
        raise InputError("start must be a position or null")
    if not (isinstance(actions, list) and all(type(action) is int for action in actions)):
        raise InputError("actions must be a list of numbers")
    return start, tuple(actions)


def value_lost(before: State, after: State, value: float, value_after: float) -> float:
    """The loss of value by a move, from the values of both positions for the player to move in each, -1..1."""
    return max(0.0, value - returned_value(before, after, value_after))


def returned_value(before: State, after: State, value_after: float) -> float:
    """The value of a move for the player who made it, from the value after it for the player to move then."""
    mover = int(before.current_player)
    sign = 0 if after.terminated else 1 if int(after.current_player) == mover else -1
    return float(after.rewards[mover]) + sign * value_after


def _options_of(game: AnyGame) -> Json:
    """The options of the game; nothing if they are not known, as of a game that is not registered."""
    try:
        return options_of(game)
    except InputError:
        return {}


def _given_result(result: object) -> tuple[tuple[float, float] | None, str | None]:
    """The rewards and the end of a question's `result`; nothing of an unfinished game.

    Raises:
      InputError: it is no result.
    """
    if result is None:
        return None, None
    if not (isinstance(result, dict) and result.get("winner") in (0, 1, None) and isinstance(result.get("end"), str)):
        raise InputError("result must be null, or a winner (0, 1 or null) and an end")
    winner = result["winner"]
    first = 0.0 if winner is None else 1.0 - 2.0 * winner
    return (first, 0.0 - first), result["end"]


def _is_pair(pair: object, limits: tuple[int, int]) -> TypeGuard[list[int]]:
    """Whether `pair` is a list of two numbers, each from 0 to its limit (excluded)."""
    if not (isinstance(pair, list) and len(pair) == 2):
        return False
    return all(type(number) is int and 0 <= number < limit for number, limit in zip(pair, limits, strict=True))
