"""Trees as text and as pictures, of searches whose trees are known by hand."""

import dataclasses
import functools
import re
import xml.etree.ElementTree as ElementTree

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rules_alone import RulesAlone

import azjax.games
from azjax.core.errors import InputError
from azjax.games.protocols import DrawableGame
from azjax.render import animate, principal_variation, slideshow, to_graphviz, to_svg, to_text
from azjax.render.tree_nodes import node_summaries
from azjax.search import advance, alphazero_policy, evaluators, uct_policy

SVG = "{http://www.w3.org/2000/svg}"
VALUES_NOTE = "Values are for the player who moved into the node; at the root, for the player to move."
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
    assert to_text(connect2_tree(), CONNECT2).splitlines() == [
        "Tree 0: 6 nodes, in the order in which they were made.",
        VALUES_NOTE,
        "node  parent  move  visits  prior   value  position",
        "   0       -  -          6      -  +0.000  ____",
        "   1       0  a1         2  0.250  +0.000  X___",
        "   2       0  b1         1  0.250  +0.000  _X__",
        "   3       0  c1         1  0.250  +0.000  __X_",
        "   4       0  d1         1  0.250  +0.000  ___X",
        "   5       1  b1         1  0.333  +0.000  XO__",
    ]


def test_in_depth_order_each_node_is_followed_by_its_indented_subtree():
    assert to_text(connect2_tree(), CONNECT2, order="depth", max_nodes=4).splitlines() == [
        "Tree 0: 4 of 6 nodes, each followed by its subtree, the most visited child first.",
        VALUES_NOTE,
        "node  parent  move  visits  prior   value  position",
        "   0       -  -          6      -  +0.000  ____",
        "   1       0    a1       2  0.250  +0.000  X___",
        "   2       0    b1       1  0.250  +0.000  _X__",
        "   3       0    c1       1  0.250  +0.000  __X_",
    ]
    assert cells(to_text(connect2_tree(), CONNECT2, order="depth"), "node") == ["0", "1", "5", "2", "3", "4"]


def test_a_trace_shows_the_evaluation_of_each_node():
    # The root was evaluated as 0, and the win five times as 1.
    assert to_text(connect2_tree(), CONNECT2, 1, trace=True).splitlines() == [
        "Tree 1: 2 nodes, in the order in which they were made.",
        VALUES_NOTE,
        "node  parent  move  visits  prior   value  evaluation  position",
        "   0       -  -          6      -  +0.833      +0.000  X_OX",
        "   1       0  b1         5  1.000  +1.000      +1.000  XOOX",
    ]


def test_without_a_game_actions_are_numbers_and_there_are_no_positions():
    assert to_text(connect2_tree(), row=1).splitlines()[2:] == [
        "node  parent  move  visits  prior   value",
        "   0       -  -          6      -  +0.833",
        "   1       0  1          5  1.000  +1.000",
    ]


def connect2_uct_tree():
    return searched(CONNECT2, ("____", "X_OX"), 40, uct_policy).tree


def test_uct_shows_the_wins_of_each_side_and_the_ucb1_score():
    # O wins every time: UCB is 1 + sqrt(2) sqrt(ln 40 / 40).
    assert to_text(connect2_uct_tree(), CONNECT2, 1).splitlines()[2:] == [
        "node  parent  move  visits  wins of X  wins of O   value     UCB  position",
        "   0       -  -         40          0         40  +1.000       -  X_OX",
        "   1       0  b1        40          0         40  +1.000  +1.429  XOOX",
    ]
    assert cells(to_text(connect2_uct_tree(), CONNECT2, 1, exploration=0.0), "UCB") == ["-", "+1.000"]


def test_wins_agree_with_the_results_of_all_simulations():
    nodes = node_summaries(connect2_uct_tree())
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
        for node in node_summaries(tree).values():
            if bool(node.state.terminated):
                assert node.evaluation == pytest.approx(1, abs=1e-5)  # no draw is near
            else:
                value = values[TICTACTOE.to_text(node.state).count("_")]
                assert node.evaluation == pytest.approx(value if node.parent is None else -value, abs=1e-5)

    check(result.tree)
    # A reused tree keeps them.
    check(advance(result.tree, jnp.array([5])))


def test_evaluations_and_means_are_shown_where_simulations_count_by_their_errors():
    """The evaluator says the same of every position: every value below the root is that or a result."""

    def surely_half(params, key, states):
        batch = len(states.terminated)
        return jnp.zeros((batch, 4)), jnp.full(batch, 0.5), jnp.full(batch, 7 / 32)

    result = alphazero_policy(
        None, jax.random.key(0), positions(CONNECT2, "____"), game=CONNECT2, evaluator=surely_half, num_simulations=40
    )
    nodes = node_summaries(result.tree)
    assert nodes[0].value == pytest.approx(float(result.value[0]), abs=1e-6)
    ends = 0
    for node in nodes.values():
        if bool(node.state.terminated):
            assert node.evaluation in (pytest.approx(0, abs=1e-6), pytest.approx(1, abs=1e-6))
            ends += 1
        else:
            assert node.evaluation == pytest.approx(0.5 if node.parent is None else -0.5, abs=1e-5)
    assert ends > 0


def test_the_principal_variation_is_the_most_visited_line():
    assert principal_variation(connect2_tree()) == [0, 1]
    assert principal_variation(connect2_tree(), CONNECT2) == ["a1", "b1"]
    assert principal_variation(connect2_tree(), CONNECT2, 1) == ["b1"]


def test_proven_values_are_shown_and_the_principal_variation_wins():
    result = searched(CONNECT2, ("____", "XOX_"), 60, solver=True)
    text = to_text(result.tree, CONNECT2, max_nodes=None)
    moves, proven = cells(text, "move"), cells(text, "proven")
    assert proven[0] == "win"
    line = principal_variation(result.tree)
    assert line[0] == result.action[0]
    assert len(line) == 3  # X has two neighbours with the second stone at the latest
    assert proven[moves.index("b1" if line[0] == 1 else "c1")] == "win"
    assert cells(to_text(result.tree, CONNECT2, 1), "proven") == ["draw", "draw"]
    assert "draw" in to_graphviz(result.tree, CONNECT2, 1)


def test_in_order_of_visits_the_most_visited_come_first():
    text = to_text(tictactoe_tree(), TICTACTOE, order="visits", max_nodes=None)
    visits = list(map(int, cells(text, "visits")))
    assert visits == sorted(visits, reverse=True)
    assert visits[0] == 41 == len(visits)


@pytest.mark.parametrize("order", ["made", "depth", "visits"])
@pytest.mark.parametrize("max_nodes", [1, 7, 1000, None])
def test_at_most_max_nodes_are_shown_and_each_with_its_parent(order, max_nodes):
    text = to_text(tictactoe_tree(), TICTACTOE, order=order, max_nodes=max_nodes)
    numbers, parents = cells(text, "node"), cells(text, "parent")
    assert len(numbers) == min(max_nodes or 41, 41)
    assert set(parents) <= {*numbers, "-"}


@pytest.mark.parametrize(("max_nodes", "max_depth", "shown"), [(1, None, 1), (12, None, 12), (None, 1, 10), (5, 0, 1)])
def test_pictures_show_the_requested_number_of_nodes(max_nodes, max_depth, shown):
    limits = {"max_nodes": max_nodes, "max_depth": max_depth}
    dot = to_graphviz(tictactoe_tree(), TICTACTOE, **limits)
    drawn = re.findall(r'^  n(\d+) \[label="(?:[^"\\]|\\.)*"\];$', dot, re.MULTILINE)
    edges = re.findall(r'^  n(\d+) -> n(\d+) \[label="(?:[^"\\]|\\.)*"\];$', dot, re.MULTILINE)
    assert len(drawn) == len(set(drawn)) == shown
    assert sorted(below for _, below in edges) == sorted(set(drawn) - {"0"})
    picture = ElementTree.fromstring(to_svg(tictactoe_tree(), TICTACTOE, **limits))
    assert len(picture.findall(f"{SVG}svg")) == shown
    assert len(picture.findall(f"{SVG}path")) == shown - 1


def test_a_picture_labels_nodes_with_move_visits_value_and_the_number_of_omitted_children():
    texts = [text.text for text in ElementTree.fromstring(to_svg(connect2_tree(), CONNECT2, 0)).findall(f"{SVG}text")]
    assert texts == [
        *(VALUES_NOTE, "6 visits, +0.000", "a1", "2 visits, +0.000", "b1", "1 visit, +0.000", "b1", "1 visit, +0.000"),
        *("c1", "1 visit, +0.000", "d1", "1 visit, +0.000"),
    ]
    few = ElementTree.fromstring(to_svg(connect2_tree(), CONNECT2, max_nodes=2))
    assert [text.text for text in few.findall(f"{SVG}text") if "more" in text.text] == ["3 more", "1 more"]


def test_boards_do_not_overlap():
    picture = ElementTree.fromstring(to_svg(tictactoe_tree(), TICTACTOE, max_nodes=None))
    corners = [[float(board.attrib[name]) for name in ("x", "y")] for board in picture.findall(f"{SVG}svg")]
    width, height = (float(picture.find(f"{SVG}svg").attrib[name]) for name in ("width", "height"))
    for index, (x, y) in enumerate(corners):
        assert 0 <= x <= float(picture.attrib["width"]) - width
        assert 0 <= y <= float(picture.attrib["height"]) - height
        assert all(abs(x - other_x) >= width or abs(y - other_y) >= height for other_x, other_y in corners[:index])


@pytest.mark.slow_except("connect_four")
@pytest.mark.parametrize("name", ["connect_four", "santorini"])
def test_trees_of_other_games_can_be_drawn(name):
    game = azjax.games.make(name)
    states = jax.tree.map(lambda leaf: leaf[None], game.init(jax.random.key(0)))
    evaluator = evaluators.uniform(game)
    tree = alphazero_policy(None, jax.random.key(0), states, game=game, evaluator=evaluator, num_simulations=3).tree
    assert len(ElementTree.fromstring(to_svg(tree, game)).findall(f"{SVG}svg")) == 4
    text = to_text(tree, game)
    assert cells(text, "visits") == ["4", "1", "1", "1"]
    assert cells(text, "position")[0] == game.to_text(jax.tree.map(lambda leaf: leaf[0], states))
    assert to_graphviz(tree, game).count("->") == 3


class PixelPictures(RulesAlone, DrawableGame):
    """A game without text whose pictures give their size in pixels alone."""

    def svg(self, state, *, policy=None, last_action=None):
        return '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg" width="50px" height="100"/>'


def test_the_tree_of_a_game_without_text_shows_numbers():
    assert to_text(tictactoe_tree(), RulesAlone()) == to_text(tictactoe_tree())
    assert to_graphviz(tictactoe_tree(), RulesAlone()) == to_graphviz(tictactoe_tree())


def test_a_picture_with_a_size_in_pixels_is_scaled():
    board = ElementTree.fromstring(to_svg(tictactoe_tree(), PixelPictures())).find(f"{SVG}svg")
    assert board.attrib["viewBox"] == "0 0 50 100"
    assert float(board.attrib["height"]) == 2 * float(board.attrib["width"])


@dataclasses.dataclass(frozen=True)
class Document(RulesAlone, DrawableGame):
    """Tic-tac-toe whose picture is any document of SVG."""

    attributes: str = ""

    def svg(self, state, *, policy=None, last_action=None):
        shape = '<circle r="9"/>'
        return f'<svg xmlns="http://www.w3.org/2000/svg" {self.attributes}>{shape}</svg>'


@pytest.mark.parametrize(
    ("attributes", "box"),
    [
        ("", "0 0 300 150"),
        ('viewBox="0 0 60 40"', "0 0 60 40"),
        ('viewBox="0,0,60, 40" aria-label="a board"', "0 0 60 40"),
        ('width="60pt" height="40pt"', "0 0 60 40"),
        ('width="100%" height="100%"', "0 0 300 150"),
        ('width="6" height="4" viewBox="-1 -2 60 40"', "-1 -2 60 40"),
    ],
)
def test_any_document_is_a_part_of_other_pictures(attributes, box):
    game = Document(attributes=attributes)
    board = ElementTree.fromstring(to_svg(tictactoe_tree(), game)).find(f"{SVG}svg")
    assert board.attrib["viewBox"] == box
    states = [game.init(jax.random.key(0))]
    states.append(game.step(states[0], 4))
    *_, width, height = box.split()
    for document in (animate(game, states, [4]), slideshow(game, states, [4], title="of tests")):
        assert f'viewBox="0 0 {width} {height}"' in document
        assert '<circle r="9"' in document


def test_the_tree_of_a_game_without_pictures_is_not_drawn():
    with pytest.raises(InputError, match="bare has no picture"):
        to_svg(tictactoe_tree(), RulesAlone())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"order": "breadth"}, "order must be one of made, depth, visits, got 'breadth'"),
        ({"max_nodes": 0}, "max_nodes must be at least 1.*got 0"),
        ({"row": 2}, "row must be in 0..1, got 2"),
        ({"row": -1}, "row must be in 0..1, got -1"),
    ],
)
def test_bad_arguments_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        to_text(connect2_tree(), CONNECT2, **options)


def test_a_negative_depth_is_refused():
    with pytest.raises(ValueError, match=r"max_depth must be at least 0.*got -1"):
        to_svg(connect2_tree(), CONNECT2, max_depth=-1)
