"""A person plays an agent in the terminal, and sees what the agent considers."""

import collections
import contextlib
import dataclasses
import functools
import itertools
import textwrap
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

import jax
import numpy as np
from jaxtyping import PRNGKeyArray, PyTree
from rich.console import Console
from rich.table import Table
from rich.text import Text

from azjax.core.errors import InputError
from azjax.evaluation import MoveChoice, Player, RememberingPolicy, act, for_one_position, observe, search, start_memory
from azjax.evaluation.host_games import host_step
from azjax.games.game import AnyGame, State
from azjax.games.protocols import (
    DrawableGame,
    TextGame,
    action_from_text,
    action_to_text,
    legal_texts,
    player_names,
    rules_for_people,
)
from azjax.play.ongoing_game import batch_of_one, total_rewards
from azjax.render import to_text

_MAX_LISTED = 40  # legal moves listed at each turn
_TOP_MOVES = 5  # of the agent's policy
_TREE_NODES = 20  # of a printed search
_MEMORIES = 8  # of the last turns: a memory can be a large tree
_BAR_WIDTH = 24
_STYLES = ("bold cyan", "bold magenta")  # of player 0 and player 1, and of their pieces
_YES_NO = ("yes", "no")
_RESULTS = {1: ("You won!", "bold green"), 0: ("It's a draw.", "bold yellow"), -1: ("You lost.", "bold red")}
_HELP = (
    ("rules", "tells how the game is played"),
    ("moves", "lists the legal moves"),
    ("hint", "shows what the agent would play in your place"),
    ("tree", "prints the agent's search of this position, the most visited lines"),
    ("trace", "prints the same search node by node, in the order in which the nodes were added"),
    ("why", "prints the search behind the agent's last move"),
    ("back", "takes back your last move and the reply to it"),
    ("resign", "resigns the game"),
    ("quit", "leaves; so do Ctrl-D and Ctrl-C"),
)


class _Quit(Exception):
    """The person leaves."""


class _Resigned(Exception):
    """The person resigns."""


def play_in_terminal(
    game: AnyGame,
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
      game: the game. One that is not a `TextGame` is played by action numbers, without a board.
      levels: the agent at each level; the person chooses among several.
      console: prints everything but the prompts.
      level: the level of all games; None asks before each game.
      human_seat: 0 if the person moves first, 1 if the agent does; None asks before each game.
      seed: seed of the start positions and the agent's draws.
      ask: shows a prompt and returns the line typed. EOFError and KeyboardInterrupt leave.

    Raises:
      InputError: no level, an unknown level, or a seat other than 0 and 1.
    """
    if not levels:
        raise InputError("levels must hold at least one player")
    if level is not None and level not in levels:
        raise InputError(f"unknown level {level!r}; available: {', '.join(levels)}")
    if human_seat not in (None, 0, 1):
        raise InputError(f"human_seat must be 0, 1 or None, got {human_seat}")
    levels = {name: for_one_position(player) for name, player in levels.items()}
    dialogue = _Dialogue(console, ask)
    keys = map(functools.partial(jax.random.fold_in, jax.random.key(seed)), itertools.count())
    score: collections.Counter[int] = collections.Counter()
    again = True
    try:
        while again:
            chosen = level or (dialogue.choose("Level", levels) if len(levels) > 1 else next(iter(levels)))
            agent, seat = levels[chosen], human_seat
            if seat is None:
                seat = 0 if dialogue.choose("Would you like to start?", _YES_NO, "y/n") == "yes" else 1
            console.print()
            console.rule(Text(f"{game.name} against {agent.name}" + f" (level {chosen})" * (len(levels) > 1)))
            score[_TerminalGame(game, agent, seat, dialogue, keys).play()] += 1
            dialogue.say(f"Score: {score[1]} won, {score[-1]} lost, {score[0]} drawn.\n")
            again = dialogue.choose("Play again?", _YES_NO, "y/n") == "yes"
    except (_Quit, KeyboardInterrupt):
        pass
    dialogue.say("Goodbye!")


@dataclasses.dataclass(frozen=True)
class _Dialogue:
    """Prints to the person, and reads what they type."""

    console: Console
    ask: Callable[[str], str]

    def say(self, text: str, style: str = "") -> None:
        # Never as a plain string: what was typed may look like rich's markup.
        self.console.print(Text(text, style))

    def complain(self, reason: str) -> None:
        """Prints one line, however long the reason."""
        width = self.console.width
        self.say(reason if len(reason) <= width else f"{reason[: width - 4]} ...", "red")

    def answer(self, prompt: str) -> str:
        """The line typed, stripped.

        Raises:
          _Quit: end of input, or Ctrl-C.
        """
        try:
            return self.ask(prompt).strip()
        except UnicodeDecodeError:
            return ""
        except (EOFError, KeyboardInterrupt):
            self.console.print()  # ends the line of the prompt
            raise _Quit from None

    def thinking(self) -> contextlib.AbstractContextManager[object]:
        """Shows that the agent is thinking, in a terminal."""
        return self.console.status("thinking") if self.console.is_terminal else contextlib.nullcontext()

    def choose(self, question: str, options: Collection[str], shown: str = "") -> str:
        """Asks until the answer is one of the options, in full or by its first letters."""
        while True:
            answer = self.answer(f"{question} ({shown or '/'.join(options)}): ").lower()
            if answer in ("quit", "exit"):
                raise _Quit
            exact = [option for option in options if option.lower() == answer]
            matches = exact or [option for option in options if option.lower().startswith(answer)]
            if len(matches) == 1:
                return matches[0]
            *rest, last = options
            self.complain(f"Please answer {', '.join(rest)} or {last}, not {answer!r}.")


class _Turn(NamedTuple):
    """A position of the game, the agent's memory there (None far back), and the key with which the agent thinks."""

    state: State
    memory: PyTree
    key: PRNGKeyArray


@dataclasses.dataclass(frozen=True)
class _TerminalGame:
    """One game: a list of turns, which is shortened to take a move back.

    Attributes:
      human: the person's seat.
      keys: endless.
    """

    game: AnyGame
    agent: Player
    human: int
    dialogue: _Dialogue
    keys: Iterator[PRNGKeyArray]

    def play(self) -> int:
        """The result for the person: 1, 0 or -1."""
        start: State = self.game.init(next(self.keys))
        turns = [_Turn(start, start_memory(self.agent, batch_of_one(start)), next(self.keys))]
        try:
            while not turns[-1].state.terminated:
                self._show_board(turns)
                turns = self._human_turn(turns) if self._is_human(turns[-1]) else self._agent_turn(turns)
        except _Resigned:
            result = -1
        else:
            self._show_board(turns)
            result = int(np.sign(total_rewards([turn.state for turn in turns])[self.human]))
        self.dialogue.say(*_RESULTS[result])
        return result

    def _human_turn(self, turns: list[_Turn]) -> list[_Turn]:
        """The turns after the person's move, or after moves were taken back."""
        state = turns[-1].state
        _, choice, memory = self._think(turns[-1])
        self.dialogue.say(f"Your turn: you are {self._own_name()}.", _STYLES[self.human])
        self._say_chance("your", choice)
        moves = legal_texts(self.game, state)
        is_listed = len(moves) <= _MAX_LISTED
        self.dialogue.say(
            "Legal moves: " + (" ".join(moves) if is_listed else f"{len(moves)} (type moves to list them)")
        )
        while True:
            text = self.dialogue.answer("Your move (? for help): ")
            match text.lower():
                case "":
                    self.dialogue.complain("Please type a move, or ? for help.")
                case "?" | "help":
                    self._help(moves[0])
                case "rules":
                    self._tell_rules()
                case "moves":
                    self.dialogue.say(" ".join(moves))
                case "hint":
                    self._show_policy("What the agent would play:", state, choice)
                case "tree":
                    self._show_search(turns[-1], "depth")
                case "trace":
                    self._show_search(turns[-1], "made")
                case "why":
                    agents = [turn for turn in turns if not self._is_human(turn)]
                    if agents and not self._has_forgotten(agents[-1]):
                        self._show_search(agents[-1], "depth")
                    elif agents:
                        self.dialogue.complain("The search of that move is not kept: it lies too far back.")
                    else:
                        self.dialogue.complain("The agent has not moved yet.")
                case "back":
                    earlier = [ply for ply, turn in enumerate(turns[:-1]) if self._is_human(turn)]
                    if earlier:
                        return self._back_to(turns[: earlier[-1] + 1])
                    self.dialogue.complain("There is no move of yours to take back.")
                case "resign":
                    raise _Resigned
                case "quit" | "exit":
                    raise _Quit
                case _:
                    try:
                        action = action_from_text(self.game, state, text)
                    except InputError as error:
                        self.dialogue.complain(str(error))
                    else:
                        return self._after(turns, memory, action)

    def _own_name(self) -> str:
        """The person's side, with the letters of its pieces where the board shows these."""
        name = player_names(self.game)[self.human]
        letters = self.game.piece_letters[self.human] if isinstance(self.game, TextGame) else ""
        return name if letters in ("", name) else f"{name} ({' and '.join(letters)})"

    def _agent_turn(self, turns: list[_Turn]) -> list[_Turn]:
        """The turns after the agent's move."""
        state = turns[-1].state
        self.dialogue.say("The agent's turn.", _STYLES[1 - self.human])
        action, choice, memory = self._think(turns[-1])
        self._say_chance("its own", choice)
        self._show_policy("Moves that it considered:", state, choice)
        self.dialogue.say(f"The agent plays {action_to_text(self.game, state, action)}.", "bold")
        return self._after(turns, memory, action)

    def _after(self, turns: list[_Turn], memory: PyTree, action: int) -> list[_Turn]:
        state: State = host_step(self.game, turns[-1].state, action)
        memory = observe(self.agent, memory, np.array([action], np.int32))
        old = [turn._replace(memory=None) for turn in turns[:-_MEMORIES]]
        return [*old, *turns[-_MEMORIES:], _Turn(state, memory, next(self.keys))]

    def _back_to(self, turns: list[_Turn]) -> list[_Turn]:
        """The turns, the last of which has a memory."""
        last = turns[-1]
        if self._has_forgotten(last):
            last = last._replace(memory=start_memory(self.agent, batch_of_one(last.state)))
        return [*turns[:-1], last]

    def _has_forgotten(self, turn: _Turn) -> bool:
        return turn.memory is None and isinstance(self.agent.policy, RememberingPolicy)

    def _is_human(self, turn: _Turn) -> bool:
        return int(turn.state.current_player) == self.human

    def _think(self, turn: _Turn) -> tuple[int, MoveChoice, PyTree]:
        """`azjax.evaluation.act` for one state. Both sides call it, so that it is compiled once."""
        with self.dialogue.thinking():
            actions, choice, memory = act(self.agent, turn.key, batch_of_one(turn.state), turn.memory)
            actions, choice = jax.device_get((actions, choice))
        return int(actions[0]), choice, memory

    def _show_search(self, turn: _Turn, order: str) -> None:
        """Prints the tree of the agent's search at a turn; `order` is that of `azjax.render.to_text`."""
        with self.dialogue.thinking():
            result = search(self.agent, turn.key, batch_of_one(turn.state), turn.memory)
        if result is None:
            self.dialogue.complain(f"{self.agent.name} does not search; hint shows what it would play.")
            return
        text = to_text(result.tree, self.game, max_nodes=_TREE_NODES, order=order, trace=order == "made")
        self.dialogue.console.print(Text(text), soft_wrap=True)

    def _show_board(self, turns: Sequence[_Turn]) -> None:
        """Draws the last position. Pieces have the color of their side; what the last move changed is highlighted."""
        game, console = self.game, self.dialogue.console
        if not isinstance(game, TextGame):
            moves = len(turns) - 1
            elsewhere = "; --web shows its picture" * isinstance(game, DrawableGame)
            where = f"Position after {moves} move{'s' * (moves != 1)}"
            self.dialogue.say(f"\n{where}. {game.name} is not drawn in text{elsewhere}.\n")
            return
        last_two = (turns[-2:][0].state, turns[-1].state)
        before, drawing = (textwrap.indent(game.draw(state), "  ") for state in last_two)
        board = Text(drawing)
        for index, character in enumerate(drawing):
            for letters, style in zip(game.piece_letters, _STYLES, strict=True):
                if character in letters:
                    board.stylize(style, index, index + 1)
        if len(before) == len(drawing):
            for index, (old, new) in enumerate(zip(before, drawing, strict=True)):
                if old != new:
                    board.stylize("bold reverse", index, index + 1)
        console.print()
        console.print(board, soft_wrap=True)
        console.print()

    def _say_chance(self, whose: str, choice: MoveChoice) -> None:
        """Prints the agent's estimate for the player to move. A draw counts as half a win."""
        value = float(choice.value[0])
        if not np.isnan(value):
            self.dialogue.say(f"The agent believes {whose} chance of winning from here is {(1 + value) / 2:.0%}.")

    def _show_policy(self, heading: str, state: State, choice: MoveChoice) -> None:
        """Prints the preferred moves, best first."""
        console, preferences = self.dialogue.console, np.asarray(choice.preferences[0])
        mark = "#" if console.options.ascii_only else "█"
        ranked = np.argsort(-preferences, kind="stable")[: np.count_nonzero(preferences)]
        table = Table(box=None, show_header=False, padding=(0, 1))
        table.add_column()
        table.add_column(justify="right")
        table.add_column()
        for action in ranked[:_TOP_MOVES]:
            share = float(preferences[action])
            bar = Text(mark * round(_BAR_WIDTH * share), _STYLES[int(state.current_player)])
            table.add_row(Text(action_to_text(self.game, state, int(action))), f"{share:.0%}", bar)
        self.dialogue.say(heading)
        console.print(table)
        if len(ranked) > _TOP_MOVES:
            rest = float(preferences[ranked[_TOP_MOVES:]].sum())
            self.dialogue.say(f"  and {len(ranked) - _TOP_MOVES} more with {rest:.0%} together", "dim")

    def _tell_rules(self) -> None:
        rules, notation = rules_for_people(self.game)
        self.dialogue.say(" ".join(filter(None, (rules, notation))) or f"{self.game.name} does not tell its rules.")

    def _help(self, move: str) -> None:
        table = Table(box=None, show_header=False, padding=(0, 1))
        for command, meaning in ((move, "plays the move of this name (or type its number)"), *_HELP):
            table.add_row(Text(command, "bold"), meaning)
        self.dialogue.console.print(table)
