"""A game between people and agents: its positions, its records, and what agents think of it, as the page asks for them.

A game is its start and its actions, which come with every question; nothing of it is kept but positions that were seen.
"""

import collections
import dataclasses
import functools
import math
import threading
from collections.abc import Callable, Mapping
from typing import Any

import jax
import numpy as np

from azjax.agents import NUM_SIMULATIONS
from azjax.core.errors import InputError
from azjax.evaluation import GameRecord, Player, act, judge
from azjax.evaluation.host_step import step_one
from azjax.games.game import Game
from azjax.games.protocols import action_to_text
from azjax.play.thinking import Thinker, Thought
from azjax.render.picture import svg
from azjax.render.tree_text import NodeView, line_of, most_visited, move_text
from azjax.search.tree import ROOT

_SHOWN_MOVES = 8
_TREE_NODES = 40
_KEPT_POSITIONS = 4096
_MAX_EDITS = 1024


class Table:
    """What is played, by whom, and what is known of it.

    Args:
      game: the game.
      name: of the agent, for people.
      thinker: searches; it is running.
      players: who moves at once, by level; at every other level a search does.
      exact: best play, where the game is solved.
      num_simulations: that the page begins with.
    """

    def __init__(
        self,
        game: Game,
        name: str,
        thinker: Thinker,
        players: Mapping[str, Player],
        exact: Player | None = None,
        num_simulations: int = NUM_SIMULATIONS,
    ) -> None:
        self.game, self.name, self.thinker, self.players, self.exact = game, name, thinker, players, exact
        self.num_simulations = num_simulations
        self._positions: collections.OrderedDict[tuple, Any] = collections.OrderedDict()
        self._lock = threading.Lock()

    @property
    def levels(self) -> list[str]:
        """Rising, as far as one can say before they play."""
        return ["search", *self.players] if "hard" in self.players else [*self.players, "search"]

    def level_of(self, asked: dict[str, Any]) -> str:
        """Who is asked.

        Raises:
          ValueError: nobody that is known.
        """
        level = asked.get("level")
        if level not in self.levels:
            raise InputError(f"unknown level {str(level)[:40]!r}; available: {', '.join(self.levels)}")
        return level

    def states(self, start: str | None, actions: tuple[int, ...]) -> list[Any]:
        """The positions of a game, one more than its actions.

        Raises:
          ValueError: a start or an action that the rules do not allow.
        """
        states = [self._known((start,), functools.partial(self._begin, start))]
        for ply, action in enumerate(actions):
            step = functools.partial(self._step, states[ply], action, ply)
            states.append(self._known((start, *actions[: ply + 1]), step))
        return states

    def _known(self, key: tuple, make: Callable[[], Any]) -> Any:
        with self._lock:
            if key in self._positions:
                self._positions.move_to_end(key)
                return self._positions[key]
        state = make()
        with self._lock:
            self._positions[key] = state
            while len(self._positions) > _KEPT_POSITIONS:
                self._positions.popitem(last=False)
        return state

    def _begin(self, start: str | None) -> Any:
        state = self.game.init(jax.random.key(0)) if start is None else self.game.from_text(start)
        return jax.tree.map(np.asarray, state)

    def _step(self, state: Any, action: int, ply: int) -> Any:
        legal = np.asarray(self.game.legal_action_mask(state))
        if bool(state.terminated) or not (0 <= action < len(legal) and legal[action]):
            raise InputError(f"action {ply + 1}: {action} is not a legal action there")
        return step_one(self.game, state, action)

    # What the page asks for. Each takes the body of a request, and raises ValueError with a reason for people.

    def position(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The last position of a game: its picture, its legal moves, and who moves or has won."""
        start, actions = game_of(asked)
        states = self.states(start, actions)
        state, game = states[-1], self.game
        before = zip(states, actions, strict=False)
        legal = [] if state.terminated else np.flatnonzero(game.legal_action_mask(state)).tolist()
        return {
            "svg": svg(game, state, last_action=actions[-1] if actions else None),
            "text": _text_of(game, state),
            "legal": [
                {"action": a, "move": action_to_text(game, state, a), "squares": game.action_squares(state, a)}
                for a in legal
            ],
            "moves": [action_to_text(game, each, action) for each, action in before],
            "movers": [int(each.current_player) for each in states],
            "over": bool(state.terminated),
            "rewards": _rewards(states).tolist(),
        }

    def set_up(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The position of a text."""
        text = asked.get("text")
        if not isinstance(text, str):
            raise InputError("text must be a position")
        try:
            state = self.game.from_text(text.strip())
        except NotImplementedError as error:
            raise InputError(str(error)) from None
        return {"start": self.game.to_text(state)}

    def edited(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The last position of a game with other pieces on some squares: its picture, its text, and what is wrong.

        `pieces` are pairs of a square and an index of `Game.piece_names`, put down one after the other; `mover`, where
        it is given, is who is to move, if the pieces do not tell.
        """
        pieces, mover = asked.get("pieces"), asked.get("mover")
        if not self.game.piece_names:
            raise InputError(f"{self.game.name} has no pieces to place")
        limits = math.prod(self.game.observation_shape[:2]), len(self.game.piece_names)
        if not (isinstance(pieces, list) and len(pieces) <= _MAX_EDITS and all(_is_pair(p, limits) for p in pieces)):
            raise InputError(f"pieces must be at most {_MAX_EDITS} pairs of a square and a piece")
        if mover is not None and not (type(mover) is int and mover in (0, 1)):
            raise InputError("mover must be 0, 1 or null")
        start, actions = game_of(asked)
        state = self.states(start, actions)[-1]
        for square, piece in pieces:
            state = self.game.with_piece(state, square, piece)
        text, wrong = self.game.to_text(state), None
        if mover is not None:
            other = dataclasses.replace(state, current_player=np.int32(mover))
            # In some games the pieces tell who is to move, and the text does not.
            state, text = (other, told) if (told := self.game.to_text(other)) != text else (state, text)
        try:
            text = self.game.to_text(state := self.game.from_text(text))
        except ValueError as error:
            wrong = str(error)
        return {"svg": svg(self.game, state), "text": text, "wrong": wrong, "mover": int(state.current_player)}

    def record(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The game as a line of JSON; see `azjax.evaluation.GameRecord`."""
        start, actions = game_of(asked)
        names = asked.get("players", ["first", "second"])
        if not (isinstance(names, list) and len(names) == 2 and all(isinstance(name, str) for name in names)):
            raise InputError("players must be two names")
        first, second = names
        states = self.states(start, actions)
        moves = tuple(action_to_text(self.game, state, action) for state, action in zip(states, actions, strict=False))
        first_reward, second_reward = _rewards(states).tolist()
        told = (first_reward, second_reward) if states[-1].terminated else None
        return {"line": GameRecord(self.game, (first, second), moves, told, start).to_json()}

    def load(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The game of such a line."""
        line = asked.get("line")
        if not isinstance(line, str):
            raise InputError("line must be a game as a line of JSON")
        record = GameRecord.from_json(line)
        if record.game != self.game:
            raise InputError(f"that is a game of {record.game}, and this page plays {self.game}")
        _, actions = record.replay()
        return {"start": record.start, "actions": actions, "players": record.players}

    def judged(self, asked: dict[str, Any]) -> dict[str, Any]:
        """What a player who moves at once makes of the last position: the last thought of a search."""
        start, actions = game_of(asked)
        state = self.running(start, actions)
        player = self.players[self.level_of(asked)]
        key = jax.random.key(np.random.default_rng().integers(2**32))
        chosen, judgement, _ = jax.device_get(act(player, key, _batch(state)))
        value = None if np.isnan(judgement.value[0]) else float(judgement.value[0])
        policy = judgement.preferences[0]
        told = {"simulations": 0, "value": value, "action": int(chosen[0]), "last": True}
        return told | self._shown(state, actions, policy)

    def exact_value(self, state: Any) -> float:
        """The true value, for the player to move."""
        assert self.exact is not None
        return float(judge(self.exact, jax.random.key(0), _batch(state)).value[0])

    def thought(self, state: Any, actions: tuple[int, ...], thought: Thought) -> dict[str, Any]:
        """What the page shows of a thought."""
        told: dict[str, Any] = {
            "simulations": thought.num_simulations,
            "value": thought.value,
            "proven": thought.proven,
            "action": thought.action,
            "last": thought.is_last,
            **self._shown(state, actions, thought.policy),
        }
        if (nodes := thought.nodes) is not None:
            told["variation"] = [move_text(nodes, self.game, node) for node in line_of(nodes)]
            told["tree"] = self._branch(nodes, nodes[ROOT], set(most_visited(nodes, _TREE_NODES)))
        return told

    def _shown(self, state: Any, actions: tuple[int, ...], policy: np.ndarray) -> dict[str, Any]:
        likeliest = [action for action in np.argsort(-policy)[:_SHOWN_MOVES].tolist() if policy[action] > 0]
        return {
            "svg": svg(self.game, state, policy=policy, last_action=actions[-1] if actions else None),
            "policy": [
                {"action": action, "move": action_to_text(self.game, state, action), "share": float(policy[action])}
                for action in likeliest
            ],
        }

    def _branch(self, nodes: dict[int, NodeView], node: NodeView, shown: set[int]) -> dict[str, Any]:
        """A node and those below it, for a tree that opens."""
        return {
            "move": move_text(nodes, self.game, node),
            "visits": node.visits,
            "value": node.value,
            "below": [self._branch(nodes, nodes[child], shown) for child in node.children if child in shown],
        }

    def running(self, start: str | None, actions: tuple[int, ...]) -> Any:
        state = self.states(start, actions)[-1]
        if state.terminated:
            raise InputError("the game is over")
        return state


def game_of(asked: dict[str, Any]) -> tuple[str | None, tuple[int, ...]]:
    """Start and actions of a question.

    Raises:
      ValueError: of another type.
    """
    start, actions = asked.get("start"), asked.get("actions", [])
    if not isinstance(start, str | None):
        raise InputError("start must be a position or null")
    if not (isinstance(actions, list) and all(type(action) is int for action in actions)):
        raise InputError("actions must be a list of numbers")
    return start, tuple(actions)


def _is_pair(pair: Any, limits: tuple[int, int]) -> bool:
    """Whether it is two numbers below the limits."""
    if not (isinstance(pair, list) and len(pair) == 2):
        return False
    return all(type(number) is int and 0 <= number < limit for number, limit in zip(pair, limits, strict=True))


def given_away(before: Any, after: Any, value: float, value_after: float) -> float:
    """What a move from one position to another gave away, by their values for who is to move in each, -1..1."""
    mover = int(before.current_player)
    sign = 0 if after.terminated else 1 if int(after.current_player) == mover else -1
    return max(0.0, value - (float(after.rewards[mover]) + sign * value_after))


def _rewards(states: list[Any]) -> np.ndarray:
    """float [2]: of a whole game."""
    return np.sum([np.asarray(state.rewards, float) for state in states], axis=0) + 0.0  # no -0


def _text_of(game: Game, state: Any) -> str | None:
    try:
        return game.to_text(state)
    except NotImplementedError:
        return None


def _batch(state: Any) -> Any:
    return jax.tree.map(lambda leaf: np.asarray(leaf)[None], state)
