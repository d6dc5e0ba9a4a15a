import jax
import pytest

from azjax.agents import load_opponent
from azjax.core.errors import InputError
from azjax.evaluation import optimal_player, play_match, random_player
from azjax.evaluation.openspiel import OpenSpielPlayer
from azjax.games.registry import make

pytest.importorskip("pyspiel", reason="OpenSpiel is not installed")
TICTACTOE = make("tictactoe")


@pytest.mark.parametrize("spec", ["openspiel:mcts:1000", "openspiel:minimax:9"])
def test_its_bots_do_not_lose_tictactoe(spec, solution_of):
    bot = load_opponent(spec)
    match = play_match(TICTACTOE, bot, random_player(TICTACTOE), 4, jax.random.key(0))
    assert match.total.losses == 0
    assert match.score > 0.5
    best = optimal_player(solution_of("tictactoe"))
    assert play_match(TICTACTOE, bot, best, 2, jax.random.key(0), opening_plies=1).total.losses == 0


@pytest.mark.parametrize(
    "game",
    [
        make("connect_four"),
        make("connect_four", columns=4, rows=5, in_a_row=3),
        make("hex", size=3, swap=True),
        make("mnk", columns=5, rows=3, in_a_row=3),
    ],
    ids=str,
)
def test_games_end_as_here(game):
    match = play_match(game, OpenSpielPlayer("bot", "mcts", 20), random_player(game), 2, jax.random.key(0))
    assert match.games == 2


def test_what_it_cannot_play_is_refused(positions_of):
    bot = OpenSpielPlayer("bot", "mcts", 20)
    brandub = make("brandub")
    available = "connect_four, hex, mnk, othello, pgx:hex, pgx:othello, tictactoe"
    with pytest.raises(InputError, match=f"bot cannot play brandub; available: {available}"):
        play_match(brandub, bot, random_player(brandub), 2, jax.random.key(0))
    starts = positions_of(TICTACTOE, "X________")
    with pytest.raises(InputError, match="bot cannot begin at the position 'X________'"):
        play_match(TICTACTOE, bot, random_player(TICTACTOE), 2, jax.random.key(0), start_states=starts)
    small = make("othello", size=6)
    with pytest.raises(InputError, match="bot cannot play othello by these rules; available"):
        play_match(small, bot, random_player(small), 2, jax.random.key(0))
    for spec, message in [
        ("openspiel:chess:3", "unknown bot 'chess' of OpenSpiel; available: mcts, minimax"),
        ("openspiel:mcts", "'openspiel:mcts': openspiel:mcts:SIMULATIONS or openspiel:minimax:PLIES"),
        ("openspiel:mcts:0", r"the number must be at least 1 and below 2\^31, got 0"),
        ("openspiel:mcts:2147483648", r"at least 1 and below 2\^31, got 2147483648"),
    ]:
        with pytest.raises(ValueError, match=message):
            load_opponent(spec)
