"""A person plays an agent in the terminal, and sees what the agent thinks."""

import collections
import contextlib
import dataclasses
import functools
import itertools
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

import chex
import jax
import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax.core.errors import InputError
from azjax.evaluation import Judgement, Player, act, observe, search, start_memory
from azjax.evaluation.host_step import step_one
from azjax.games.game import Game
from azjax.games.protocols import action_from_text, action_to_text, legal_texts, player_names

_MOST_LISTED = 40  # legal moves that a turn lists unasked
_TOP_MOVES = 5  # of the agent's policy
_TREE_NODES = 20  # that a printed search shows
_BAR_WIDTH = 24
_SIDES = ("bold cyan", "bold magenta")  # the players and their pieces
_YES_NO = ("yes", "no")
_ENDS = {1: ("You won!", "bold green"), 0: ("It's a draw.", "bold yellow"), -1: ("You lost.", "bold red")}


class _Left(Exception):
    """The person leaves."""


class _Resigned(Exception):
    """The person gives the game up."""


def play_in_terminal(
    game: Game,
    levels: Mapping[str, Player],
    *,
    console: Console,
    level: str | None = None,
    human_seat: int | None = None,
    seed: int = 0,
    ask: Callable[[str], str] = input,
) -> None:
    """Plays games against a person until they leave.

    Args:
      game: what is played; it needs text and moves in text.
      levels: the agent at each level; the person chooses where there are several.
      console: where everything but the prompts is printed.
      level: the level of all games; None asks before each.
      human_seat: 0 where the person moves first, 1 where the agent does; None asks before each game.
      seed: of the start positions and the agent's draws.
      ask: shows a prompt and returns the line typed; EOFError and KeyboardInterrupt leave.

    Raises:
      ValueError: no level, an unknown one, or a seat other than 0 and 1.
    """
    if not levels:
        raise InputError("levels must hold at least one player")
    if level is not None and level not in levels:
        raise InputError(f"unknown level {level!r}; available: {', '.join(levels)}")
    if human_seat not in (None, 0, 1):
        raise InputError(f"human_seat must be 0, 1 or None, got {human_seat}")
    dialogue = _Dialogue(console, ask)
    keys = map(functools.partial(jax.random.fold_in, jax.random.key(seed)), itertools.count())
    score: collections.Counter[int] = collections.Counter()
    again = True
    try:
        while again:
            chosen = level or (dialogue.choose("Level", levels) if len(levels) > 1 else next(iter(levels)))
            agent = levels[chosen]
            seat = human_seat
            if seat is None:
                seat = 0 if dialogue.choose("Would you like to start?", _YES_NO, "y/n") == "yes" else 1
            console.print()
            console.rule(Text(f"{game.name} against {agent.name}" + f" (level {chosen})" * (len(levels) > 1)))
            score[_OneGame(game, agent, seat, dialogue, keys).play()] += 1
            dialogue.say(f"Score: {score[1]} won, {score[-1]} lost, {score[0]} drawn.\n")
            again = dialogue.choose("Play again?", _YES_NO, "y/n") == "yes"
    except (_Left, KeyboardInterrupt):
        pass
    dialogue.say("Goodbye!")


@dataclasses.dataclass(frozen=True)
class _Dialogue:
    """What is said to the person, and what they answer."""

    console: Console
    ask: Callable[[str], str]

    def say(self, text: str, style: str = "") -> None:
        # Never as a plain string: what was typed may look like rich's markup.
        self.console.print(Text(text, style))

    def complain(self, reason: str) -> None:
        """One line, whatever was typed."""
        width = self.console.width
        self.say(reason if len(reason) <= width else f"{reason[: width - 4]} ...", "red")

    def answer(self, prompt: str) -> str:
        """The line typed, without the space around it.

        Raises:
          _Left: at the end of input, or at Ctrl-C.
        """
        try:
            return self.ask(prompt).strip()
        except UnicodeDecodeError:
            return ""
        except (EOFError, KeyboardInterrupt):
            self.console.print()  # the cursor still stands behind the prompt
            raise _Left from None

    def thinking(self) -> contextlib.AbstractContextManager:
        """Tells the person meanwhile that the agent thinks."""
        return self.console.status("thinking") if self.console.is_terminal else contextlib.nullcontext()

    def choose(self, question: str, options: Collection[str], shown: str = "") -> str:
        """The option that was answered, in full or by its first letters; asks until there is one."""
        while True:
            answer = self.answer(f"{question} ({shown or '/'.join(options)}): ").lower()
            if answer in ("quit", "exit"):
                raise _Left
            exact = [option for option in options if option.lower() == answer]
            found = exact or [option for option in options if option.lower().startswith(answer)]
            if len(found) == 1:
                return found[0]
            *rest, last = options
            self.complain(f"Please answer {', '.join(rest)} or {last}, not {answer!r}.")


class _Moment(NamedTuple):
    """A position of the game, what the agent remembers as it comes to it, and the key that it thinks with."""

    state: Any
    memory: Any
    key: chex.PRNGKey


@dataclasses.dataclass(frozen=True)
class _OneGame:
    """A game is its list of moments: taking back is a shorter list.

    Attributes:
      human: the person's seat.
      keys: endless.
    """

    game: Game
    agent: Player
    human: int
    dialogue: _Dialogue
    keys: Iterator[chex.PRNGKey]

    def play(self) -> int:
        """The result for the person: 1, 0 or -1."""
        start = self.game.init(next(self.keys))
        moments = [_Moment(start, start_memory(self.agent, _batch(start)), next(self.keys))]
        try:
            while not moments[-1].state.terminated:
                self._show_board(moments)
                moments = self._human_turn(moments) if self._is_humans(moments[-1]) else self._agent_turn(moments)
        except _Resigned:
            result = -1
        else:
            self._show_board(moments)
            result = int(np.sign(sum(float(moment.state.rewards[self.human]) for moment in moments)))
        self.dialogue.say(*_ENDS[result])
        return result

    def _human_turn(self, moments: list[_Moment]) -> list[_Moment]:
        """The moments up to the person's next move, or before their last one."""
        state = moments[-1].state
        _, judgement, memory = self._think(moments[-1])
        self.dialogue.say(f"Your turn: you are {player_names(self.game)[self.human]}.", _SIDES[self.human])
        self._say_chance("your", judgement.value)
        moves = legal_texts(self.game, state)
        few = len(moves) <= _MOST_LISTED
        self.dialogue.say("Legal moves: " + (" ".join(moves) if few else f"{len(moves)} (type moves to list them)"))
        while True:
            text = self.dialogue.answer("Your move (? for help): ")
            match text.lower():
                case "":
                    self.dialogue.complain("Please type a move, or ? for help.")
                case "?" | "help":
                    self._help(moves[0])
                case "moves":
                    self.dialogue.say(" ".join(moves))
                case "hint":
                    self._show_policy("What the agent would play:", state, judgement.preferences)
                case "tree":
                    self._show_search(moments[-1], "depth")
                case "trace":
                    self._show_search(moments[-1], "made")
                case "why":
                    agents = [past for past in moments if not self._is_humans(past)]
                    if agents:
                        self._show_search(agents[-1], "depth")
                    else:
                        self.dialogue.complain("The agent has not moved yet.")
                case "back":
                    earlier = [index for index, past in enumerate(moments[:-1]) if self._is_humans(past)]
                    if earlier:
                        return moments[: earlier[-1] + 1]
                    self.dialogue.complain("There is no move of yours to take back.")
                case "resign":
                    raise _Resigned
                case "quit" | "exit":
                    raise _Left
                case _:
                    try:
                        action = action_from_text(self.game, state, text)
                    except ValueError as error:
                        self.dialogue.complain(str(error))
                    else:
                        return self._after(moments, memory, action)

    def _agent_turn(self, moments: list[_Moment]) -> list[_Moment]:
        """The moments up to the agent's move."""
        state = moments[-1].state
        self.dialogue.say("The agent's turn.", _SIDES[1 - self.human])
        action, judgement, memory = self._think(moments[-1])
        self._say_chance("its own", judgement.value)
        self._show_policy("What it looks like inside its brain:", state, judgement.preferences)
        self.dialogue.say(f"The agent plays {action_to_text(self.game, state, action)}.", "bold")
        return self._after(moments, memory, action)

    def _after(self, moments: list[_Moment], memory: Any, action: int) -> list[_Moment]:
        state = step_one(self.game, moments[-1].state, action)
        memory = observe(self.agent, memory, np.array([action], np.int32))
        return [*moments, _Moment(state, memory, next(self.keys))]

    def _is_humans(self, moment: _Moment) -> bool:
        return int(moment.state.current_player) == self.human

    def _think(self, moment: _Moment) -> tuple[int, Judgement, Any]:
        """What `azjax.evaluation.act` returns, of one state; at either's turn, so that it is compiled once."""
        with self.dialogue.thinking():
            actions, judgement, memory = act(self.agent, moment.key, _batch(moment.state), moment.memory)
            actions, judgement = jax.device_get((actions, judgement))
        return int(actions[0]), jax.tree.map(lambda leaf: leaf[0], judgement), memory

    def _show_search(self, moment: _Moment, order: str) -> None:
        """Prints the tree of the search that the agent judges, or judged, the moment by; see `Tree.to_text`."""
        with self.dialogue.thinking():
            result = search(self.agent, moment.key, _batch(moment.state), moment.memory)
        if result is None:
            self.dialogue.complain(f"{self.agent.name} does not search; hint tells what it would play.")
            return
        told = result.tree.to_text(self.game, max_nodes=_TREE_NODES, order=order, trace=order == "made")
        self.dialogue.console.print(Text(told), soft_wrap=True)

    def _show_board(self, moments: list[_Moment]) -> None:
        """Draws the last state, pieces in the colours of their sides, with what the last move changed highlighted."""
        last_two = (moments[-2:][0].state, moments[-1].state)
        before, drawing = (textwrap.indent(self.game.draw(state), "  ") for state in last_two)
        board = Text(drawing)
        for place, character in enumerate(drawing):
            for letters, style in zip(self.game.piece_letters, _SIDES, strict=True):
                if character in letters:
                    board.stylize(style, place, place + 1)
        if len(before) == len(drawing):
            for place, (old, new) in enumerate(zip(before, drawing, strict=True)):
                if old != new:
                    board.stylize("bold reverse", place, place + 1)
        console = self.dialogue.console
        console.print()
        console.print(board, soft_wrap=True)
        console.print()

    def _say_chance(self, whose: str, value: float) -> None:
        """`value` is the agent's estimate for the player to move; a draw counts as half a win."""
        if not np.isnan(value):
            self.dialogue.say(f"The agent believes {whose} chance of winning from here is {(1 + value) / 2:.0%}.")

    def _show_policy(self, heading: str, state: Any, preferences: np.ndarray) -> None:
        """The preferred moves of float [A], best first."""
        console = self.dialogue.console
        mark = "#" if console.options.ascii_only else "█"
        ranked = np.argsort(-preferences, kind="stable")[: np.count_nonzero(preferences)]
        table = Table(box=None, show_header=False, padding=(0, 1))
        table.add_column()
        table.add_column(justify="right")
        table.add_column()
        for action in ranked[:_TOP_MOVES]:
            share = float(preferences[action])
            bar = Text(mark * round(_BAR_WIDTH * share), _SIDES[int(state.current_player)])
            table.add_row(Text(action_to_text(self.game, state, action)), f"{share:.0%}", bar)
        self.dialogue.say(heading)
        console.print(table)
        if len(ranked) > _TOP_MOVES:
            rest = float(preferences[ranked[_TOP_MOVES:]].sum())
            self.dialogue.say(f"  and {len(ranked) - _TOP_MOVES} more with {rest:.0%} together", "dim")

    def _help(self, move: str) -> None:
        table = Table(box=None, show_header=False, padding=(0, 1))
        for command, what in (
            (move, "plays the move written so (or give its number)"),
            ("moves", "lists the legal moves"),
            ("hint", "tells what the agent would play in your place"),
            ("tree", "prints the agent's search of this position, the most visited lines"),
            ("trace", "prints the same search position by position, in the order in which they were looked at"),
            ("why", "prints the search of the agent's last move"),
            ("back", "takes back your last move and the answer to it"),
            ("resign", "gives the game up"),
            ("quit", "leaves; so do Ctrl-D and Ctrl-C"),
        ):
            table.add_row(Text(command, "bold"), what)
        self.dialogue.console.print(table)


def _batch(state: Any) -> Any:
    """The state as a batch of one."""
    return jax.tree.map(lambda leaf: leaf[None], state)
