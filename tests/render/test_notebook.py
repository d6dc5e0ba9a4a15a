"""What notebooks show, through the display formatter of IPython."""

import dataclasses
import re
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import pytest
from IPython.core.formatters import DisplayFormatter
from rules_alone import RulesAlone

import azjax
from azjax.evaluation import GameRecord
from azjax.games.check import check_game
from azjax.games.mnk import Mnk
from azjax.render import svg
from azjax.search import alphazero_policy, evaluators, uct_policy

GAMES = {
    "tictactoe": {},
    "connect_four": {},
    "santorini": {"size": 3, "workers": 1},
    "brandub": {},
    "pgx:tic_tac_toe": {},
}
TICTACTOE, CONNECT2 = azjax.make("tictactoe"), azjax.make("connect2")
KEY = jax.random.key(0)


def shown(value):
    """What a notebook shows of the last expression of a cell, by MIME type."""
    bundle, _ = DisplayFormatter().format(value)
    assert bundle.pop("text/plain")
    return bundle


def page(value):
    bundle = shown(value)
    assert set(bundle) == {"text/html"}
    return bundle["text/html"]


def batch_of_starts(game, count):
    return jax.vmap(game.init)(jax.random.split(KEY, count))


@pytest.mark.parametrize("name", GAMES)
def test_a_state_is_shown_as_its_picture_and_a_batch_as_its_first_six(name):
    if name.startswith("pgx:"):
        pytest.importorskip("pgx")
    game = azjax.make(name, **GAMES[name])
    batch = batch_of_starts(game, 8)
    state = jax.tree.map(lambda leaf: leaf[7], batch)
    assert shown(state) == {"image/svg+xml": svg(game, state)}
    boards = page(batch)
    assert boards.count("<svg ") == boards.count("</svg>") == 6
    assert f"6 of 8 positions of {game.name}" in boards


def test_show_draws_a_policy_and_the_last_action():
    state = TICTACTOE.step(TICTACTOE.init(KEY), jnp.int32(4))
    policy = jnp.full(9, 0.125).at[4].set(0)
    picture = azjax.show(TICTACTOE, state, policy=policy, last_action=jnp.int32(4))
    assert shown(picture) == {"image/svg+xml": svg(TICTACTOE, state, policy=policy, last_action=4)}
    assert "Last move b2. Likely moves a3 12%" in picture.svg


def test_values_without_a_picture_are_shown_as_plain_text():
    state = TICTACTOE.init(KEY)

    @jax.jit
    def traced(state):
        assert shown(state) == {}
        return state

    traced(state)
    jax.vmap(traced)(batch_of_starts(TICTACTOE, 2))
    assert shown(jax.eval_shape(lambda: state)) == {}
    assert shown(jax.tree.map(lambda leaf: leaf + 0.5, state)) == {}
    assert shown(jax.tree.map(lambda leaf: None, state)) == {}
    assert shown(jax.tree.map(lambda leaf: jnp.zeros((2, 3, *leaf.shape), leaf.dtype), state)) == {}
    deleted = TICTACTOE.step(state, jnp.int32(0))
    jax.tree.map(lambda leaf: leaf.delete(), deleted)
    bundle, _ = DisplayFormatter().format(deleted)
    assert bundle.keys() <= {"text/plain"}
    plain = DisplayFormatter().format(state)[0]["text/plain"]
    assert "StonesState(stones=" in plain
    assert "game=" not in plain


def test_a_game_without_a_picture_is_shown_as_plain_text():
    game = RulesAlone()
    state = dataclasses.replace(TICTACTOE.init(KEY), game=game)
    assert shown(state) == {}
    states = jax.tree.map(lambda leaf: leaf[None], state)
    assert shown(states) == {}
    assert shown(uct_policy(None, KEY, states, game=game, num_simulations=4)) == {}
    assert shown(GameRecord(game, ("Ann", "Bob"), ("4",), None)) == {}


def test_a_state_keeps_its_game_as_a_static_field():
    one, equal, other = (azjax.make("mnk", columns=4, rows=4, in_a_row=k).init(KEY) for k in (3, 3, 4))
    assert jax.tree.structure(one) == jax.tree.structure(equal) != jax.tree.structure(other)
    calls = []
    identity = jax.jit(lambda state: calls.append(state) or state)
    assert [identity(state).game.in_a_row for state in (one, equal, other)] == [3, 3, 4]
    assert len(calls) == 2
    assert "game" not in "".join(jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(one))


class Named(Mnk):
    """An m,n,k game whose name is not plain text."""


@pytest.mark.slow
def test_the_name_of_a_game_is_escaped():
    game = Named(3, 3, 3, name="<b>&")
    assert "2 of 2 positions of &lt;b&gt;&amp;" in page(batch_of_starts(game, 2))
    ElementTree.fromstring(shown(game.init(KEY))["image/svg+xml"])
    check_game(game, num_games=4)


def test_a_game_record_is_shown_as_slides():
    record = GameRecord(TICTACTOE, ("Ann", "<Bob>"), ("a1", "a2", "b1", "b2", "c1"), (1.0, -1.0))
    assert "Ann (X) against &lt;Bob&gt; (O): X won, 5 plies" in page(record)
    unfinished = GameRecord(TICTACTOE, ("Ann", "Bob"), ("a1",), None)
    assert "Ann (X) against Bob (O): unfinished, 1 ply" in page(unfinished)
    resigned = GameRecord(TICTACTOE, ("Ann", "Bob"), ("a1",), (-1.0, 1.0), end="resignation")
    assert "O won (resignation), 1 ply" in page(resigned)
    drawn = GameRecord(TICTACTOE, ("Ann", "Bob"), ("a1",), (0.0, 0.0), end="agreement")
    assert "drawn (agreement)" in page(drawn)


# Searches.


def rows(table):
    return [re.findall("<t[hd]>(.*?)</t[hd]>", row) for row in re.findall("<tr>(.*?)</tr>", table)]


def searched(game, texts, num_simulations, policy=uct_policy, **options):
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(game.from_text, texts))
    return policy(None, KEY, states, game=game, num_simulations=num_simulations, **options)


def with_priors(*texts):
    return searched(CONNECT2, texts, 5, alphazero_policy, evaluator=evaluators.uniform(CONNECT2))


def test_a_search_is_shown_as_its_first_root_its_moves_and_the_top_of_its_tree():
    html = page(with_priors("____", "X_OX"))
    assert "connect2: 5 simulations, the first of 2 positions" in html
    assert "for X" in html
    head, *moves = rows(html)
    assert head == ["move", "visits", "policy", "prior", "value"]
    assert [row[0] for row in moves][:4] == ["a1", "b1", "c1", "d1"]
    assert {row[3] for row in moves} == {"0.250"}
    assert html.count("Likely moves") == 1
    assert 'class="azjax-tree"' in html
    ElementTree.fromstring(html)
    assert set(re.findall(r"https?://[^\"' ]+", html)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in html


def test_a_search_by_rollouts_has_no_priors_and_a_solver_adds_what_is_proven():
    html = page(searched(CONNECT2, ("X_OX",), 40, solver=True))
    assert "move b1; value +1.000 for O; proven: win" in html
    assert rows(html)[0] == ["move", "visits", "policy", "value", "proven"]
    assert rows(html)[1][-1] == "win"


def test_moves_beyond_the_eighth_are_counted():
    html = page(searched(TICTACTOE, ("_________",), 40))
    assert len(rows(html)) == 1 + 8
    assert "and 1 more" in html


def test_a_search_after_the_end_of_the_game_shows_no_move():
    html = page(with_priors("XXO_"))
    assert "<p>the game is over</p>" in html
    assert len(rows(html)) == 1


def test_traced_abstract_and_stacked_search_results_are_shown_as_plain_text():
    @jax.jit
    def search(states):
        result = uct_policy(None, KEY, states, game=CONNECT2, num_simulations=4)
        assert shown(result) == {}
        return result

    states = batch_of_starts(CONNECT2, 2)
    result = search(states)
    assert page(result)
    assert shown(jax.eval_shape(search, states)) == {}
    assert shown(jax.tree.map(lambda leaf: leaf[None], result)) == {}


# Players.


def test_a_packaged_player_is_shown_as_a_card_without_its_weights():
    card = page(azjax.load_player("connect2"))
    assert "<b>connect2</b>" in card
    facts = dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", card, re.S))
    assert list(facts) == ["player", "strength", "search", "game", "network"]
    assert facts["player"] == "network + 64 simulations"
    assert facts["strength"] == "No mistake on any of the 23 positions."
    assert facts["search"] == "AlphaZero, 64 simulations"
    assert facts["game"].startswith("connect2: Mnk(columns=4, rows=1, in_a_row=2")
    # 8 inputs, two layers of 64 units, and heads of 64 units for 4 moves and a value.
    assert facts["network"].startswith("Mlp(width=64, depth=2")
    assert facts["network"].endswith(" parameters")
    ElementTree.fromstring(card)
    assert len(card) < 5000


def test_a_player_is_printed_in_one_short_line():
    player = azjax.load_player("connect2", level="medium")
    about = "{'agent': 'connect2', 'strength': 'No mistake on any of the 23 positions.'}"
    assert repr(player) == f"Player(name='network', about={about})"


def test_a_player_without_network_has_a_card_too():
    facts = dict(re.findall("<dt>(.*?)</dt><dd>(.*?)</dd>", page(azjax.load_player("uct:1000", CONNECT2))))
    assert list(facts) == ["player", "search", "game"]
    assert (facts["player"], facts["search"]) == ("uct:1000", "Uct, 1,000 simulations")
    assert "<b>&lt;Bob&gt;</b>" in page(dataclasses.replace(azjax.load_player("random", CONNECT2), name="<Bob>"))
