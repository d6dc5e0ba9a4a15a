"""Trees as text and as pictures, on searches whose trees are known by hand."""

import functools
import re
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax.games
from azjax.games.game import Game
from azjax.games.mnk import Mnk
from azjax.render.tree_text import made_nodes
from azjax.search import advance, alphazero_policy, evaluators, principal_variation, uct_policy

SVG = "{http://www.w3.org/2000/svg}"
SEEN_BY = "Values are seen by the player who moved into the node, the root's by its player to move."
CONNECT2 = azjax.games.make("connect2")
TICTACTOE = azjax.games.make("tictactoe")


def positions(game, *texts):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(game.from_text, texts))


@functools.cache
def searched(game, texts, num_simulations, policy=alphazero_policy, **options):
    if policy is alphazero_policy:
        options["evaluator"] = evaluators.uniform(game)
    states = positions(game, *texts)
    return policy(None, jax.random.key(0), states, game=game, num_simulations=num_simulations, **options)


def connect2_tree():
    """Row 0 from the start; in row 1, X_OX, O takes the last cell and wins."""
    return searched(CONNECT2, ("____", "X_OX"), 5).tree


def tictactoe_tree():
    return searched(TICTACTOE, ("_________",), 40).tree


def cells(text, column):
    """The column of a table by its name; columns are two spaces apart."""
    _, _, header, *lines = text.splitlines()
    names = re.split(r"  +", header.strip())
    return [re.split(r"  +", line.strip())[names.index(column)] for line in lines]


def test_the_text_of_a_small_tree():
    # The four moves are alike, so each is tried in order, and the first of them once more.
    assert connect2_tree().to_text(CONNECT2).splitlines() == [
        "Tree 0: 6 nodes, in the order in which they were made.",
        SEEN_BY,
        "node  parent  move  visits  prior   value  position",
        "   0       -  -          6      -  +0.000  ____",
        "   1       0  a1         2  0.250  +0.000  X___",
        "   2       0  b1         1  0.250  +0.000  _X__",
        "   3       0  c1         1  0.250  +0.000  __X_",
        "   4       0  d1         1  0.250  +0.000  ___X",
        "   5       1  b1         1  0.333  +0.000  XO__",
    ]


def test_below_each_node_stand_the_nodes_under_it_and_are_indented():
    assert connect2_tree().to_text(CONNECT2, order="depth", max_nodes=4).splitlines() == [
        "Tree 0: 4 of 6 nodes, each above those below it, of the most visited.",
        SEEN_BY,
        "node  parent  move  visits  prior   value  position",
        "   0       -  -          6      -  +0.000  ____",
        "   1       0    a1       2  0.250  +0.000  X___",
        "   2       0    b1       1  0.250  +0.000  _X__",
        "   3       0    c1       1  0.250  +0.000  __X_",
    ]
    assert cells(connect2_tree().to_text(CONNECT2, order="depth"), "node") == ["0", "1", "5", "2", "3", "4"]


def test_a_trace_tells_what_each_node_was_judged_to_be_worth_and_made_rows_alone_are_shown():
    # The root was judged 0 and the win 1, five times.
    assert connect2_tree().to_text(CONNECT2, 1, trace=True).splitlines() == [
        "Tree 1: 2 nodes, in the order in which they were made.",
        SEEN_BY,
        "node  parent  move  visits  prior   value  judged  position",
        "   0       -  -          6      -  +0.833  +0.000  X_OX",
        "   1       0  b1         5  1.000  +1.000  +1.000  XOOX",
    ]


def test_without_a_game_actions_are_numbers_and_there_are_no_positions():
    assert connect2_tree().to_text(row=1).splitlines()[2:] == [
        "node  parent  move  visits  prior   value",
        "   0       -  -          6      -  +0.833",
        "   1       0  1          5  1.000  +1.000",
    ]


def connect2_uct_tree():
    return searched(CONNECT2, ("____", "X_OX"), 40, uct_policy).tree


def test_uct_shows_the_wins_of_each_side_and_the_score_of_ucb1():
    # O wins every time: UCB is 1 + sqrt(2) sqrt(ln 40 / 40).
    assert connect2_uct_tree().to_text(CONNECT2, 1).splitlines()[2:] == [
        "node  parent  move  visits  wins of X  wins of O   value     UCB  position",
        "   0       -  -         40          0         40  +1.000       -  X_OX",
        "   1       0  b1        40          0         40  +1.000  +1.429  XOOX",
    ]
    assert cells(connect2_uct_tree().to_text(CONNECT2, 1, exploration=0.0), "UCB") == ["-", "+1.000"]


def test_wins_are_those_of_the_games_played():
    nodes = made_nodes(connect2_uct_tree())
    ends = []  # X's results of all simulations
    for node in nodes.values():
        x_moved = node.depth % 2 == 1 or node.parent is None  # X is to move at the root
        won, lost = node.wins if x_moved else node.wins[::-1]
        assert won + lost <= node.visits
        assert node.value == pytest.approx((won - lost) / node.visits)
        ended_here = node.visits - sum(nodes[child].visits for child in node.children)
        if node.parent is None:
            assert ended_here == 0
            assert node.evaluation is None
        else:
            assert node.evaluation in (-1, 0, 1)
            ends += [node.evaluation if x_moved else -node.evaluation] * ended_here
    assert len(ends) == 40
    assert nodes[0].wins == (ends.count(1), ends.count(-1))


def test_evaluations_are_those_of_the_evaluator():
    def free_cells(state):
        return jnp.sum(TICTACTOE.legal_action_mask(state))

    values = np.arange(10, dtype=np.float32) / 16
    params = np.zeros((10, 9), np.float32), values
    states = positions(TICTACTOE, "XX_OO____")
    evaluator = evaluators.table(free_cells)
    result = alphazero_policy(
        params, jax.random.key(0), states, game=TICTACTOE, evaluator=evaluator, num_simulations=40
    )

    def check(tree):
        for node in made_nodes(tree).values():
            if bool(node.state.terminated):
                assert node.evaluation == pytest.approx(1, abs=1e-5)  # no draw is near
            else:
                value = values[TICTACTOE.to_text(node.state).count("_")]
                assert node.evaluation == pytest.approx(value if node.parent is None else -value, abs=1e-5)

    check(result.tree)
    # A reused tree keeps them.
    check(advance(result.tree, jnp.array([5])))


def test_the_principal_variation_is_the_most_visited_line():
    assert principal_variation(connect2_tree()) == [0, 1]
    assert principal_variation(connect2_tree(), CONNECT2) == ["a1", "b1"]
    assert principal_variation(connect2_tree(), CONNECT2, 1) == ["b1"]


def test_what_a_solver_proves_is_shown_and_its_line_is_that_of_the_win():
    result = searched(CONNECT2, ("____", "XOX_"), 60, solver=True)
    text = result.tree.to_text(CONNECT2, max_nodes=None)
    moves, proven = cells(text, "move"), cells(text, "proven")
    assert proven[0] == "win"
    line = principal_variation(result.tree)
    assert line[0] == result.action[0]
    assert len(line) == 3  # X has two neighbours with the second stone at the latest
    assert proven[moves.index("b1" if line[0] == 1 else "c1")] == "win"
    assert cells(result.tree.to_text(CONNECT2, 1), "proven") == ["draw", "draw"]
    assert "draw" in result.tree.to_graphviz(CONNECT2, 1)


def test_the_most_visited_come_first():
    text = tictactoe_tree().to_text(TICTACTOE, order="visits", max_nodes=None)
    visits = list(map(int, cells(text, "visits")))
    assert visits == sorted(visits, reverse=True)
    assert visits[0] == 41 == len(visits)


@pytest.mark.parametrize("order", ["made", "depth", "visits"])
@pytest.mark.parametrize("max_nodes", [1, 7, 1000, None])
def test_no_more_nodes_are_shown_than_asked_for_and_each_with_its_parent(order, max_nodes):
    text = tictactoe_tree().to_text(TICTACTOE, order=order, max_nodes=max_nodes)
    numbers, parents = cells(text, "node"), cells(text, "parent")
    assert len(numbers) == min(max_nodes or 41, 41)
    assert set(parents) <= {*numbers, "-"}


@pytest.mark.parametrize(("max_nodes", "max_depth", "shown"), [(1, None, 1), (12, None, 12), (None, 1, 10), (5, 0, 1)])
def test_pictures_show_that_many_nodes(max_nodes, max_depth, shown):
    limits = {"max_nodes": max_nodes, "max_depth": max_depth}
    dot = tictactoe_tree().to_graphviz(TICTACTOE, **limits)
    drawn = re.findall(r'^  n(\d+) \[label="(?:[^"\\]|\\.)*"\];$', dot, re.MULTILINE)
    edges = re.findall(r'^  n(\d+) -> n(\d+) \[label="(?:[^"\\]|\\.)*"\];$', dot, re.MULTILINE)
    assert len(drawn) == len(set(drawn)) == shown
    assert sorted(below for _, below in edges) == sorted(set(drawn) - {"0"})
    picture = ElementTree.fromstring(tictactoe_tree().to_svg(TICTACTOE, **limits))
    assert len(picture.findall(f"{SVG}svg")) == shown
    assert len(picture.findall(f"{SVG}path")) == shown - 1


def test_a_picture_tells_move_visits_and_value_and_how_many_moves_it_leaves_out():
    texts = [text.text for text in ElementTree.fromstring(connect2_tree().to_svg(CONNECT2, 0)).findall(f"{SVG}text")]
    assert texts == [
        *(SEEN_BY, "6 visits, +0.000", "a1", "2 visits, +0.000", "b1", "1 visit, +0.000", "b1", "1 visit, +0.000"),
        *("c1", "1 visit, +0.000", "d1", "1 visit, +0.000"),
    ]
    few = ElementTree.fromstring(connect2_tree().to_svg(CONNECT2, max_nodes=2))
    assert [text.text for text in few.findall(f"{SVG}text") if "more" in text.text] == ["3 more", "1 more"]


def test_boards_do_not_overlap():
    picture = ElementTree.fromstring(tictactoe_tree().to_svg(TICTACTOE, max_nodes=None))
    corners = [[float(board.attrib[name]) for name in ("x", "y")] for board in picture.findall(f"{SVG}svg")]
    width, height = (float(picture.find(f"{SVG}svg").attrib[name]) for name in ("width", "height"))
    for place, (x, y) in enumerate(corners):
        assert 0 <= x <= float(picture.attrib["width"]) - width
        assert 0 <= y <= float(picture.attrib["height"]) - height
        assert all(abs(x - other_x) >= width or abs(y - other_y) >= height for other_x, other_y in corners[:place])


@pytest.mark.parametrize("name", ["connect_four", "santorini"])
def test_the_tree_of_other_games_can_be_seen(name):
    game = azjax.games.make(name)
    states = jax.tree.map(lambda leaf: leaf[None], game.init(jax.random.key(0)))
    evaluator = evaluators.uniform(game)
    tree = alphazero_policy(None, jax.random.key(0), states, game=game, evaluator=evaluator, num_simulations=3).tree
    assert len(ElementTree.fromstring(tree.to_svg(game)).findall(f"{SVG}svg")) == 4
    text = tree.to_text(game)
    assert cells(text, "visits") == ["4", "1", "1", "1"]
    assert cells(text, "position")[0] == game.to_text(jax.tree.map(lambda leaf: leaf[0], states))
    assert tree.to_graphviz(game).count("->") == 3


class Bare(Mnk):
    """Tic-tac-toe without text, and with pictures of a size in pixels alone."""

    def to_text(self, state):
        raise NotImplementedError

    def action_to_text(self, state, action):
        return str(action)

    def svg(self, state, *, policy=None, last_action=None):
        return '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="50px" height="100"/>'


class Pictureless(Mnk):
    def svg(self, state, *, policy=None, last_action=None):
        return Game.svg(self, state)


def test_a_game_without_text_shows_numbers():
    game = Bare(3, 3, 3)
    assert tictactoe_tree().to_text(game) == tictactoe_tree().to_text()
    assert tictactoe_tree().to_graphviz(game) == tictactoe_tree().to_graphviz()


def test_a_picture_of_a_size_in_pixels_is_scaled():
    board = ElementTree.fromstring(tictactoe_tree().to_svg(Bare(3, 3, 3))).find(f"{SVG}svg")
    assert board.attrib["viewBox"] == "0 0 50 100"
    assert float(board.attrib["height"]) == 2 * float(board.attrib["width"])


def test_a_game_without_picture_says_so():
    with pytest.raises(NotImplementedError, match="mnk has no picture"):
        tictactoe_tree().to_svg(Pictureless(3, 3, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "breadth"}, "order must be one of made, depth, visits, got 'breadth'"),
        ({"max_nodes": 0}, "max_nodes must be at least 1.*got 0"),
        ({"row": 2}, "row must be in 0..1, got 2"),
        ({"row": -1}, "row must be in 0..1, got -1"),
    ],
)
def test_what_cannot_be_shown_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        connect2_tree().to_text(CONNECT2, **options)


def test_a_negative_depth_is_refused():
    with pytest.raises(ValueError, match=r"max_depth must be at least 0.*got -1"):
        connect2_tree().to_svg(CONNECT2, max_depth=-1)
