import re
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp

import azjax.games
from azjax.search import alphazero_policy, evaluators, uct_policy

CONNECT2 = azjax.games.make("connect2")


def table(page):
    rows = re.findall("<tr>(.*?)</tr>", page)
    return [re.findall("<t[hd]>(.*?)</t[hd]>", row) for row in rows]


def searched(game, texts, num_simulations, policy=uct_policy, **options):
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(game.from_text, texts))
    return policy(None, jax.random.key(0), states, game=game, num_simulations=num_simulations, **options)


def with_priors(*texts):
    return searched(CONNECT2, texts, 5, alphazero_policy, evaluator=evaluators.uniform(CONNECT2))


def test_a_search_shows_its_first_root_its_moves_and_the_top_of_its_tree():
    page = with_priors("____", "X_OX")._repr_html_()
    assert "connect2: 5 simulations, the first of 2 positions" in page
    assert "for X" in page
    head, *moves = table(page)
    assert head == ["move", "visits", "policy", "prior", "value"]
    assert [row[0] for row in moves][:4] == ["a1", "b1", "c1", "d1"]
    assert {row[3] for row in moves} == {"0.250"}
    assert page.count("Likely moves") == 1
    assert 'class="azjax-tree"' in page
    ElementTree.fromstring(page)
    assert set(re.findall(r"https?://[^\"' ]+", page)) == {"http://www.w3.org/2000/svg"}
    assert "<script" not in page


def test_rollouts_have_no_priors_and_a_solver_tells_what_is_proven():
    result = searched(CONNECT2, ("X_OX",), 40, solver=True)
    page = result._repr_html_()
    assert "move b1; value +1.000 for O; proven: win" in page
    assert table(page)[0] == ["move", "visits", "policy", "value", "proven"]
    assert table(page)[1][-1] == "win"


def test_many_moves_are_counted():
    game = azjax.games.make("tictactoe")
    page = searched(game, ("_________",), 40)._repr_html_()
    assert len(table(page)) == 1 + 8
    assert "and 1 more" in page


def test_a_finished_game_has_no_move():
    page = with_priors("XXO_")._repr_html_()
    assert "<p>the game is over</p>" in page
    assert len(table(page)) == 1


def test_a_traced_result_and_one_of_another_shape_show_nothing():
    @jax.jit
    def search(states):
        result = uct_policy(None, jax.random.key(0), states, game=CONNECT2, num_simulations=4)
        assert result._repr_html_() is None
        return result

    states = jax.vmap(CONNECT2.init)(jax.random.split(jax.random.key(0), 2))
    result = search(states)
    assert result._repr_html_() is not None
    assert jax.eval_shape(search, states)._repr_html_() is None
    twice = jax.tree.map(lambda leaf: leaf[None], result)
    assert twice._repr_html_() is None
