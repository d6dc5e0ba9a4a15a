import dataclasses
import io
import itertools
import re

import jax
import jax.numpy as jnp
import pytest
from rich.console import Console

import azjax.games
from azjax.evaluation import MoveChoice, Player, optimal_player, random_player, search_player, solve, uct_player
from azjax.games.mnk import Mnk
from azjax.play import play_in_terminal
from azjax.search import evaluators

CONNECT2 = azjax.games.make("connect2")
TICTACTOE = azjax.games.make("tictactoe")
RANDOM = random_player(CONNECT2)
SEARCH = search_player(CONNECT2, evaluators.uniform(CONNECT2), num_simulations=64)


@dataclasses.dataclass(frozen=True)
class FirstLegal:
    """Takes the first legal action, and each later one `ratio` times as often; the value of all positions is 0.4."""

    game: Mnk
    ratio: float = 0.0

    def __call__(self, params, key, states):
        del params, key
        legal = jax.vmap(self.game.legal_action_mask)(states)
        weights = jnp.where(legal, self.ratio ** (jnp.cumsum(legal, axis=1) - 1), 0.0)
        probabilities = weights / weights.sum(axis=1, keepdims=True)
        return MoveChoice(probabilities, jnp.full(len(legal), 0.4), probabilities)


FIRST = Player("first", FirstLegal(CONNECT2))


@dataclasses.dataclass(frozen=True)
class TwoMovesEach(Mnk):
    """Player 0 places two stones, then player 1 does."""

    def step(self, state, action):
        after = super().step(state, action)
        moves = sum(jax.lax.population_count(word) for word in jax.tree.leaves(after.stones))
        return dataclasses.replace(after, current_player=(moves // 2 % 2).astype(jnp.int32))


def play(game, levels, *lines, console_options=None, **options):
    """The text in the terminal after these lines were typed and the input ended.

    A line may be an exception to raise, or a function that reads the terminal and returns the line.
    """
    screen, typed = io.StringIO(), iter(lines)
    console = Console(file=screen, width=100, **(console_options or {}))

    def ask(prompt):
        screen.write(prompt)
        line = next(typed, EOFError())
        if isinstance(line, BaseException):
            raise line
        line = line(screen.getvalue()) if callable(line) else line
        screen.write(line + "\n")
        return line

    levels = {"only": levels} if isinstance(levels, Player) else levels
    play_in_terminal(game, levels, console=console, ask=ask, **options)
    assert next(typed, None) is None, "not all lines were read"
    return screen.getvalue()


def boards(text):
    """The rows of each board of connect2 that was drawn, in order."""
    return re.findall(r"^  1  (.*)$", text, re.MULTILINE)


def next_to_b1(text):
    return "a1" if "a1" in text.split("Legal moves: ")[-1] else "c1"


@pytest.fixture(scope="module")
def optimal():
    return optimal_player(solve(CONNECT2))


@pytest.mark.parametrize("name", ["random", "search", "optimal"])
def test_a_person_who_starts_connect2_on_b1_wins(name, optimal):
    agents = {"random": RANDOM, "search": SEARCH, "optimal": optimal}
    text = play(CONNECT2, agents[name], "b1", next_to_b1, "n", human_seat=0)
    assert boards(text)[:2] == [". . . .", ". X . ."]
    assert boards(text)[-1] in ("X X O .", "X X . O", "O X X .")
    assert text.endswith("You won!\nScore: 1 won, 0 lost, 0 drawn.\n\nPlay again? (y/n): n\nGoodbye!\n")


def test_a_search_that_starts_connect2_wins_and_the_score_goes_on():
    text = play(CONNECT2, SEARCH, "n", "d1", "y", "n", "d1", "n")
    assert text.count("Would you like to start? (y/n): n") == 2
    assert text.count("You lost.") == 2
    assert "Score: 0 won, 1 lost, 0 drawn." in text
    assert "Score: 0 won, 2 lost, 0 drawn." in text


def test_stones_that_never_touch_make_a_draw():
    text = play(CONNECT2, FIRST, "b1", "d1", "n", human_seat=0)
    assert boards(text)[-1] == "O X O X"
    assert "It's a draw.\nScore: 0 won, 0 lost, 1 drawn.\n" in text


def test_wrong_input_is_refused_with_the_reason_and_asked_again():
    text = play(
        CONNECT2, FIRST, "zz", "b1", "b1", "", "[/red]", UnicodeDecodeError("utf-8", b"\xff", 0, 1, "?"), human_seat=0
    )
    assert "'zz' is not a legal move here; legal: a1, b1, c1, d1\nYour move (? for help): b1" in text
    assert "'b1' is not a legal move here; legal: c1, d1\n" in text
    assert "'[/red]' is not a legal move here; legal: c1, d1\n" in text
    assert text.count("Please type a move, or ? for help.\n") == 2
    assert boards(text) == [". . . .", ". X . .", "O X . ."]


def test_a_reason_takes_one_line_however_long_the_input():
    lines = play(CONNECT2, FIRST, "z" * 300, human_seat=0).splitlines()
    (reason,) = [line for line in lines if line.startswith("'zzz")]
    assert len(reason) == 100
    assert reason.endswith("z ...")
    assert lines[lines.index(reason) + 1].startswith("Your move")


def test_back_returns_to_the_last_position_of_the_human_until_the_start():
    text = play(CONNECT2, FIRST, "b1", "back", "BACK", "c1", "D1", human_seat=0)
    assert boards(text) == [". . . .", ". X . .", "O X . .", ". . . .", ". . X .", "O . X .", "O . X X"]
    assert text.count("There is no move of yours to take back.") == 1
    assert "You won!" in text


@dataclasses.dataclass(frozen=True)
class Remembers(FirstLegal):
    """Gives a value of 1 while its memory holds the current position and one thought per ply, else -1."""

    def start(self, params, states):
        return states, jnp.zeros_like(states.current_player)

    def think(self, params, key, states, memory):
        position, thoughts = memory
        right = jax.vmap(lambda state: self.game.observe(state).sum())(states) == thoughts
        for known, true in zip(jax.tree.leaves(position), jax.tree.leaves(states), strict=True):
            right &= jnp.all(known == true)
        return self(params, key, states)._replace(value=jnp.where(right, 1.0, -1.0)), (position, thoughts + 1)

    def observe(self, memory, action):
        position, thoughts = memory
        return jax.vmap(self.game.step)(position, action), thoughts


def test_the_agents_memory_is_taken_back_with_the_moves():
    text = play(CONNECT2, Player("first", Remembers(CONNECT2)), "b1", "back", "c1", "D1", human_seat=0)
    assert "You won!" in text
    assert text.count("chance of winning from here is 100%") == 6
    assert text.count("chance of winning from here is 0%") == 0


@pytest.mark.slow
def test_a_search_with_a_memory_plays_on():
    evaluator = evaluators.uniform(CONNECT2)
    agent = search_player(CONNECT2, evaluator, num_simulations=64, reuse_tree=True)
    text = play(CONNECT2, agent, "d1", "y", "d1", "n", human_seat=1)
    assert text.count("You lost.") == 2


def test_back_undoes_several_moves_one_by_one():
    game = azjax.games.make("mnk", columns=6, rows=1, in_a_row=6)
    text = play(game, Player("first", FirstLegal(game)), "f1", "e1", "back", "back", "back", human_seat=0, seed=1)
    drawn = boards(text)
    assert drawn[-1] == drawn[0] == ". . . . . ."
    assert drawn[-2] == drawn[2]
    assert text.count("There is no move of yours to take back.") == 1


def test_the_first_move_of_the_agent_cannot_be_taken_back():
    text = play(CONNECT2, FIRST, "back", human_seat=1)
    assert boards(text) == [". . . .", "X . . ."]
    assert "There is no move of yours to take back." in text


def test_a_player_who_moves_twice_in_a_row_is_asked_twice_and_takes_back_one_move():
    game = TwoMovesEach(columns=5, rows=1, in_a_row=5)
    agent = Player("first", FirstLegal(game))
    text = play(game, agent, "e1", "back", "d1", "c1", "back", human_seat=0)
    drawn = boards(text)
    assert drawn[:5] == [". . . . .", ". . . . X", ". . . . .", ". . . X .", ". . X X ."]
    assert drawn[-2].count("O") == 2
    assert drawn[-1] == ". . . X ."
    assert text.count("Your turn: you are X.") == 6
    assert text.count("The agent's turn.") == 2


def test_cells_of_tictactoe_may_be_typed_as_1_to_9():
    agent = random_player(TICTACTOE)
    text = play(TICTACTOE, agent, "0", "5", "back", "1", "back", "9", human_seat=0)
    assert "  3  . . .\n  2  . X .\n  1  . . .\n     a b c\n" in text
    assert "  3  X . .\n  2  . . .\n  1  . . .\n     a b c\n" in text
    assert "  3  . . .\n  2  . . .\n  1  . . X\n     a b c\n" in text
    assert text.count("is not a legal move here; legal: a3, b3, c3, a2, b2, c2, a1, b1, c1\n") == 1


@pytest.mark.parametrize("last", ["quit", EOFError(), KeyboardInterrupt()], ids=repr)
@pytest.mark.parametrize(
    "before", [(), ("easy",), ("easy", "y"), ("easy", "y", "a1"), ("easy", "y", "resign")], ids=len
)
def test_the_person_can_leave_at_every_prompt(before, last):
    text = play(CONNECT2, {"easy": RANDOM, "hard": FIRST}, *before, last)
    assert text.endswith("\nGoodbye!\n")
    assert text.count("Goodbye!") == 1


def test_the_person_can_interrupt_a_thinking_agent():
    def interrupt(params, key, states):
        raise KeyboardInterrupt

    assert play(CONNECT2, Player("slow", interrupt), human_seat=1).endswith("\nGoodbye!\n")


def test_rules_and_agent_are_compiled_once_for_all_games():
    traced = []

    @dataclasses.dataclass(frozen=True)
    class Traced(Mnk):
        def step(self, state, action):
            traced.append("step")
            return super().step(state, action)

    def policy(params, key, states):
        traced.append("policy")
        return FirstLegal(game)(params, key, states)

    game = Traced(columns=4, rows=1, in_a_row=2)
    text = play(game, Player("traced", policy), "y", "b1", "back", "b1", "d1", "y", "n", "d1", "n")
    assert text.count("The agent plays") == 5
    assert sorted(traced) == ["policy", "step"]


def test_a_resigned_game_is_lost():
    text = play(CONNECT2, FIRST, "resign", "y", "b1", "c1", "n", human_seat=0)
    assert text.count("You lost.\nScore: 0 won, 1 lost, 0 drawn.\n") == 1
    assert "You won!\nScore: 1 won, 1 lost, 0 drawn.\n" in text


def test_a_level_is_chosen_by_its_first_letters():
    levels = {"easy": RANDOM, "medium": FIRST, "hard": SEARCH, "harder": SEARCH}
    text = play(CONNECT2, levels, "x", "", "h", "M", "y", "resign", "y", "hard", "y", "resign", "n")
    assert text.startswith("Level (easy/medium/hard/harder): x\nPlease answer easy, medium, hard or harder, not 'x'.\n")
    assert "not ''." in text
    assert "not 'h'." in text
    titles = re.findall(r"(?m)^─+ (.*) ─+$", text)
    assert titles == ["connect2 against first (level medium)", "connect2 against search:64 (level hard)"]


def test_a_given_level_and_seat_are_not_asked_for():
    text = play(CONNECT2, {"easy": RANDOM, "hard": SEARCH}, "resign", "y", "resign", "n", level="hard", human_seat=0)
    assert text.count("connect2 against search:64 (level hard)") == 2
    assert "Level (" not in text
    assert "like to start" not in text


def test_only_y_and_n_start_a_game():
    text = play(CONNECT2, FIRST, "2", "yes", "resign", "nope", "no")
    assert "Please answer yes or no, not '2'.\nWould you like to start? (y/n): yes" in text
    assert "Please answer yes or no, not 'nope'.\nPlay again? (y/n): no\nGoodbye!" in text


def test_a_value_of_04_is_a_chance_of_70_percent_for_whoever_is_to_move():
    text = play(CONNECT2, FIRST, "b1", human_seat=0)
    assert text.count("The agent believes your chance of winning from here is 70%.") == 2
    assert text.count("The agent believes its own chance of winning from here is 70%.") == 1


def test_the_optimal_player_shows_that_the_first_player_of_connect2_wins(optimal):
    text = play(CONNECT2, optimal, "b1", human_seat=0)
    assert "The agent believes your chance of winning from here is 100%." in text
    assert "The agent believes its own chance of winning from here is 0%." in text


def test_chances_are_shown_for_a_search_and_not_for_a_player_without_values():
    assert "believes" not in play(CONNECT2, RANDOM, "b1", human_seat=0)
    text = play(CONNECT2, SEARCH, "b1", human_seat=0)
    yours, its = (int(re.search(rf"believes {whose} chance .* is (\d+)%", text)[1]) for whose in ("your", "its own"))
    assert yours > 80
    assert its < 20


def test_the_agent_shows_its_likeliest_moves_with_bars():
    game = azjax.games.make("mnk", columns=7, rows=1, in_a_row=7)
    text = play(game, Player("first", FirstLegal(game, ratio=1 / 3)), "g1", human_seat=0)
    # The shares are 0.6676, 0.2225, 0.0742, 0.0247, 0.0082 and 0.0027; a whole bar has 24 blocks.
    rows = text.split("that it considered:\n")[1].splitlines()[:6]
    assert [re.sub(" +", " ", row).strip() for row in rows] == [
        f"a1 67% {'█' * 16}",
        f"b1 22% {'█' * 5}",
        f"c1 7% {'█' * 2}",
        "d1 2% █",
        "e1 1%",
        "and 1 more with 0% together",
    ]


def test_help_and_moves_come_without_a_new_board():
    text = play(CONNECT2, FIRST, "?", "help", "moves", human_seat=0)
    assert len(boards(text)) == 1
    assert text.count("takes back your last move and the reply to it") == 2
    assert "moves\na1 b1 c1 d1\n" in text
    for command in ("moves", "hint", "tree", "trace", "why", "back", "resign", "quit"):
        assert len(re.findall(rf"(?m)^ {command} ", text)) == 2


def test_many_legal_moves_are_listed_only_when_asked_for():
    game = azjax.games.make("mnk", columns=9, rows=9, in_a_row=5)
    text = play(game, random_player(game), "moves", human_seat=0)
    assert "Legal moves: 81 (type moves to list them)\n" in text
    assert re.search(r"\): moves\na9 b9 c9 ", text)


def test_without_a_terminal_nothing_but_text_is_printed_and_with_one_the_last_move_stands_out():
    assert "\x1b" not in play(CONNECT2, FIRST, "b1", human_seat=0)
    terminal = {"force_terminal": True, "color_system": "standard", "legacy_windows": False}
    text = play(CONNECT2, FIRST, "b1", human_seat=0, console_options=terminal)
    assert "  1  . \x1b[1;7;36mX\x1b[0m . .\n" in text
    assert "  1  \x1b[1;7;35mO\x1b[0m \x1b[1;36mX\x1b[0m . .\n" in text
    assert "\x1b[1;36mYour turn: you are X." in text
    assert "\x1b[1;35mThe agent's turn." in text
    assert "thinking" in text


def test_the_same_seed_gives_the_same_games_and_another_one_others():
    lines = ("e5", "resign", "y", "e5", "resign", "n")
    game = azjax.games.make("mnk", columns=9, rows=9, in_a_row=5)
    agent = random_player(game)
    first, again, other = (play(game, agent, *lines, human_seat=0, seed=seed) for seed in (3, 3, 4))
    assert first == again
    moves = re.findall("The agent plays (.*)\\.", first)
    assert len(moves) == 2
    assert moves != re.findall("The agent plays (.*)\\.", other)


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"levels": {}}, "at least one player"),
        ({"level": "hardest"}, "unknown level 'hardest'; available: easy"),
        ({"human_seat": 2}, "human_seat must be 0, 1 or None, got 2"),
    ],
)
def test_wrong_arguments_are_refused(options, reason):
    with pytest.raises(ValueError, match=reason):
        play(CONNECT2, options.pop("levels", {"easy": RANDOM}), **options)


def test_a_hint_shows_what_the_agent_would_play_for_the_person():
    text = play(CONNECT2, FIRST, "hint", "b1", "hint", human_seat=0)
    assert [re.sub(" +", " ", row).strip() for row in re.findall("would play:\n(.*)", text)] == [
        f"a1 100% {'█' * 24}",
        f"c1 100% {'█' * 24}",
    ]


def tree_after(text, command):
    """Moves and visits of the tree that was printed at a command."""
    _, _, header, *rows = text.split(f"): {command}\n")[1].splitlines()
    assert header.split()[:4] == ["node", "parent", "move", "visits"]
    printed = itertools.takewhile(lambda row: not row.startswith("Your move"), rows)
    return [(row.split()[2], int(row.split()[3])) for row in printed]


@pytest.mark.slow_except("False")
@pytest.mark.parametrize("reuse_tree", [False, True])
def test_the_search_behind_the_agents_move_is_printed_on_request(reuse_tree):
    agent = search_player(CONNECT2, evaluators.uniform(CONNECT2), num_simulations=8, reuse_tree=reuse_tree)
    text = play(CONNECT2, agent, "why", "tree", "trace", "a1", "why", human_seat=0)
    assert text.count("The agent has not moved yet.\n") == 1
    tree = tree_after(text, "tree")
    assert tree[0] == ("-", 9)
    assert sorted(tree) == sorted(tree_after(text, "trace"))
    assert "evaluation" in text
    why = tree_after(text.split("): a1\n")[1], "why")
    # With its tree the agent goes on from what it thought at the person's turn.
    assert (why[0][1] > 9) == reuse_tree
    best = max(why[1:], key=lambda node: node[1])[0]
    assert f"The agent plays {best}." in text


def test_only_the_last_turns_have_a_memory():
    game = azjax.games.make("mnk", columns=20, rows=1, in_a_row=20)
    agent = search_player(game, evaluators.uniform(game), num_simulations=8, reuse_tree=True)
    cells = [f"{column}1" for column in "tsrqpo"]
    text = play(game, agent, *cells, "why", *["back"] * 6, "why", human_seat=1)
    assert text.count("is not a legal move") == 0
    assert text.count("The search of that move is not kept: it lies too far back.\n") == 1
    text = play(game, Player("first", Remembers(game)), *cells, *["back"] * 6, human_seat=0)
    # Back at their second turn, people meet an agent whose memory begins there, without the two thoughts before.
    assert text.count("chance of winning from here is 100%") == 13 + 4 + 1
    assert text.count("chance of winning from here is 0%") == 1


def test_rollouts_are_printed_with_their_wins_and_a_player_without_search_says_so():
    assert "wins of X" in play(CONNECT2, uct_player(CONNECT2, num_simulations=8), "trace", human_seat=0)
    assert play(CONNECT2, FIRST, "tree", human_seat=0).count("first does not search; hint shows") == 1


def test_pieces_have_the_colors_of_their_sides_if_the_game_names_their_letters():
    terminal = {"force_terminal": True, "color_system": "standard", "legacy_windows": False}
    brandub = azjax.games.make("brandub")
    text = play(brandub, random_player(brandub), human_seat=0, console_options=terminal)
    attacker, defender, king = "\x1b[1;36mt\x1b[0m", "\x1b[1;35mT\x1b[0m", "\x1b[1;35mK\x1b[0m"
    row = " ".join([attacker] * 2 + [defender, king, defender] + [attacker] * 2)
    assert f"   4  {row}\n" in text


def test_a_game_without_text_says_where_its_position_is_drawn():
    pytest.importorskip("pgx", reason="pgx is not installed")
    game = azjax.games.make("pgx:tic_tac_toe")
    text = play(game, {"only": random_player(game)}, "4", human_seat=0)
    assert "Position after 0 moves. pgx:tic_tac_toe is not drawn in text; --web shows its picture." in text
    assert "Position after 1 move. " in text
