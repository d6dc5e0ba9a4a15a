"""The outputs of `board` and `axial`, where their logits come from, and other sizes of boards."""

import dataclasses
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from flax import nnx

from azjax.games import ActionGroup, LaidOutGame
from azjax.games.registry import make
from azjax.networks import AxialNet, BoardNet, make_network
from azjax.networks.board_heads import LogitsByPlace, action_layout

GAMES = {
    "connect2": make("connect2"),
    "tictactoe": make("tictactoe"),
    "connect_four": make("connect_four"),
    "santorini 3x3": make("santorini"),
    "santorini 5x5": make("santorini", size=5, workers=2),
    "brandub": make("brandub"),
}
SHAPES = {"outcome_logits": (3,), "plies_left_logits": (32,), "short_term_values": (3,), "value_error": ()}


@dataclasses.dataclass(frozen=True)
class Shape:
    """The numbers of a game, without rules."""

    observation_shape: tuple[int, ...]
    num_actions: int


def _apply(network, train=False):
    return jax.jit(lambda variables, observations: network.apply(variables, observations, train))


def _observations(game, batch=4):
    return jax.random.normal(jax.random.key(1), (batch, *game.observation_shape))


@pytest.mark.parametrize("name", GAMES)
@pytest.mark.parametrize("kind", ["board", "axial"])
def test_the_outputs_have_their_shapes_and_ranges_on_every_board(kind, name):
    game = GAMES[name]
    network = make_network(kind, game, width=8, depth=1)
    variables = network.init(jax.random.key(0), game)
    # So large that the results saturate.
    output, _ = _apply(network)(variables, 1e4 * _observations(game, 16))
    policies = dict.fromkeys(("soft_policy_logits", "opponent_policy_logits"), (game.num_actions,))
    wanted = {output: ((16, *shape), jnp.float32) for output, shape in (SHAPES | policies).items()}
    assert {output: (leaf.shape, leaf.dtype) for output, leaf in output.auxiliary.items()} == wanted
    assert output.prior_logits.shape == (16, game.num_actions)
    assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(output))
    for values in (output.value, output.auxiliary["short_term_values"]):
        assert 0.5 < np.abs(values).max() <= 1


def test_a_fresh_policy_is_nearly_uniform_and_a_fresh_value_nearly_0():
    game = GAMES["brandub"]
    network = make_network("board", game, width=16, depth=3)
    output, _ = _apply(network)(network.init(jax.random.key(0), game), _observations(game))
    probabilities = game.num_actions * jax.nn.softmax(output.prior_logits)
    assert 0.5 < probabilities.min() < 1 < probabilities.max() < 2
    assert 0 < np.abs(output.value).max() < 0.2


@pytest.mark.parametrize(("outcome", "value"), [(0, -1), (1, 0), (2, 1)])
def test_the_value_is_that_of_loss_draw_and_win(outcome, value):
    game = GAMES["tictactoe"]
    network = BoardNet(4, 1).for_game(game)
    variables = network.init(jax.random.key(0), game)
    variables["params"]["outcome"]["bias"] = 100 * jax.nn.one_hot(outcome, 3)
    output, _ = _apply(network)(variables, _observations(game))
    np.testing.assert_allclose(output.value, value, atol=1e-6)
    np.testing.assert_array_equal(output.auxiliary["outcome_logits"].argmax(axis=1), outcome)


@pytest.mark.parametrize(
    ("observation_shape", "num_actions", "layout"),
    [
        ((1, 4, 2), 4, [ActionGroup("square", 1)]),
        ((3, 3, 2), 9, [ActionGroup("square", 1)]),
        ((7, 7, 13), 49 * 24, [ActionGroup("square", 24)]),  # brandub: four directions, six distances
        ((8, 8, 2), 64 * 3, [ActionGroup("square", 3)]),  # breakthrough
        ((8, 8, 2), 65, [ActionGroup("square", 1), ActionGroup("board", 1)]),  # Othello, whose last action passes
        ((6, 7, 2), 7, [ActionGroup("column", 1)]),
        ((3, 4, 7), 64, [ActionGroup("board", 64)]),
    ],
)
def test_the_layout_that_is_guessed_from_numbers(observation_shape, num_actions, layout):
    assert action_layout(Shape(observation_shape, num_actions)) == tuple(layout)


@pytest.mark.parametrize(
    ("options", "groups"),
    [
        ({"size": 3, "workers": 1}, [64]),
        ({"size": 4, "workers": 1}, [64]),  # which the squares of 4x4 divide
        ({"size": 5, "workers": 2}, [128]),
        ({"size": 5, "workers": 2, "placement": True}, [128, 25]),
    ],
)
def test_santorini_gives_the_layout_of_its_actions(options, groups):
    layout = action_layout(make("santorini", **options))
    assert [group.num_actions(options["size"], options["size"]) for group in layout] == groups


def _logits_moved_by(game, square, pieces=()):
    """The actions whose logits change with the features of one square, if the first plane has ones at `pieces`."""
    rows, columns, _ = game.observation_shape
    observations = np.zeros((2, rows * columns, 1), np.float32)
    observations[:, list(pieces)] = 1
    module = LogitsByPlace(4, action_layout(game), jnp.float32, nnx.Rngs(0))
    planes = np.zeros((2, rows * columns, 4), np.float32)
    planes[1, square] = [1, 2, 3, 4]
    on_board = [jnp.asarray(leaf).reshape(2, rows, columns, -1) for leaf in (planes, observations)]
    before, after = np.asarray(module(*on_board))
    assert before.shape == (game.num_actions,)
    return np.flatnonzero(before != after).tolist()


@pytest.mark.parametrize("name", ["connect2", "tictactoe", "brandub"])
def test_a_square_gives_the_logits_of_the_actions_that_begin_on_it(name):
    game = GAMES[name]
    state = game.init(jax.random.key(0))
    squares = [game.action_squares(state, action)[0] for action in range(game.num_actions)]
    for square in (0, 2, max(squares)):
        assert _logits_moved_by(game, square) == np.flatnonzero(np.equal(squares, square)).tolist()


def test_in_brandub_the_fourth_square_of_the_first_row_gives_the_logits_72_to_95():
    assert _logits_moved_by(GAMES["brandub"], 3) == list(range(72, 96))


def test_in_connect_four_a_square_gives_the_logit_of_its_column():
    assert _logits_moved_by(GAMES["connect_four"], 2 * 7 + 4) == [4]


def test_in_othello_a_square_gives_its_logit_and_that_of_the_pass():
    assert _logits_moved_by(Shape((8, 8, 2), 65), 19) == [19, 64]


def test_logits_of_squares_by_columns_come_from_their_squares():
    """Two planes on a board of 2x3 whose squares are numbered down the columns."""
    actions = (0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11)

    class ByColumns(Shape):
        action_layout = (ActionGroup("square", 2, actions=actions),)

    game = ByColumns((2, 3, 1), 12)
    assert isinstance(game, LaidOutGame)
    assert [_logits_moved_by(game, square) for square in range(6)] == [[0, 1], [4, 5], [8, 9], [2, 3], [6, 7], [10, 11]]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["animal_shogi", "gardner_chess", "chess"])
def test_in_games_of_pgx_by_columns_a_move_has_its_logits_at_the_square_of_its_piece(name):
    """In animal shogi the last three planes are drops, on empty squares."""
    pytest.importorskip("pgx", reason="pgx is not installed")
    game = make(f"pgx:{name}")
    (group,) = action_layout(game)
    place = np.argsort(group.actions) // group.planes
    pieces = 5 if name == "animal_shogi" else 6  # the first planes of an observation are the mover's pieces
    state, source, drops = game.init(jax.random.key(0)), random.Random(0), 0
    for _ in range(40):
        own = np.asarray(game.observe(state))[..., :pieces].any(axis=2).reshape(-1)
        legal = np.flatnonzero(game.legal_action_mask(state))
        is_drop = (legal >= 8 * 12) if name == "animal_shogi" else np.zeros(len(legal), bool)
        np.testing.assert_array_equal(own[place[legal]], ~is_drop)
        drops += is_drop.sum()
        if state.terminated:
            break
        state = game.step(state, np.int32(source.choice(legal)))
    assert (drops > 0) == (name == "animal_shogi")


@pytest.mark.slow
def test_in_shogi_of_pgx_a_move_has_its_logits_at_the_square_where_it_ends():
    pytest.importorskip("pgx", reason="pgx is not installed")
    game = make("pgx:shogi")
    (group,) = action_layout(game)
    place = np.argsort(group.actions) // group.planes
    state, source = game.init(jax.random.key(0)), random.Random(0)
    for _ in range(30):
        own = np.asarray(game.observe(state))[..., :14].any(axis=2).reshape(-1)
        legal = np.flatnonzero(game.legal_action_mask(state))
        assert not own[place[legal]].any()
        action = source.choice(legal)
        state = game.step(state, np.int32(action))
        theirs = np.asarray(game.observe(state))[..., 31:45].any(axis=2).reshape(-1)
        assert theirs[::-1][place[action]]  # the other player sees the board turned by half


def test_in_santorini_the_logits_of_a_worker_are_those_of_its_square_and_of_the_board():
    game = make("santorini", size=5, workers=2, placement=True)
    module = LogitsByPlace(4, action_layout(game), jnp.float32, nnx.Rngs(0))
    # The features of the whole board drop out, and with them the pooled ones.
    kernel = module.group_0.kernel
    kernel[...] = kernel[...].at[4:].set(0.0)
    planes = np.zeros((1, 25, 4), np.float32)
    planes[0, 7], planes[0, 20] = [1, 2, 3, 4], [4, 3, 2, 1]
    own = np.zeros((1, 25, 7), np.float32)
    own[0, [7, 20], 0] = 1  # the first worker in row-major order is that on square 7
    (logits,) = np.asarray(module(jnp.asarray(planes).reshape(1, 5, 5, 4), jnp.asarray(own).reshape(1, 5, 5, 7)))
    first, second = (np.asarray(planes[0, square] @ kernel[:4]) for square in (7, 20))
    np.testing.assert_allclose(logits[:64], first, atol=1e-6)
    np.testing.assert_allclose(logits[64:128], second, atol=1e-6)
    assert _logits_moved_by(game, 3, pieces=(7, 20)) == [*range(128), 128 + 3]


def test_a_worker_that_is_not_placed_has_the_logits_of_the_board_alone():
    assert _logits_moved_by(make("santorini", size=5, workers=2, placement=True), 3) == [*range(128), 128 + 3]


@pytest.mark.parametrize(
    ("small", "large"),
    [
        (make("mnk", columns=3, rows=3, in_a_row=3), make("mnk", columns=6, rows=5, in_a_row=4)),
        (Shape((5, 4, 2), 4), GAMES["connect_four"]),
        (Shape((6, 6, 2), 37), Shape((8, 8, 2), 65)),
    ],
    ids=["mnk", "connect four", "othello"],
)
def test_variables_of_one_size_of_board_serve_another(small, large):
    variables = BoardNet(8, 3).init(jax.random.key(0), small)
    network = BoardNet(8, 3).for_game(large)
    output, _ = _apply(network)(variables, _observations(large))
    assert output.prior_logits.shape == (4, large.num_actions)
    shapes = jax.eval_shape(lambda: network.init(jax.random.key(0), large))
    assert jax.tree.map(jnp.shape, shapes) == jax.tree.map(jnp.shape, variables)


def test_every_third_block_pools():
    params = BoardNet(4, 7).init(jax.random.key(0), GAMES["tictactoe"])["params"]
    blocks = [block for block in range(7) if "pooled_bias" in params[f"block_{block}"]["first"]]
    assert blocks == [2, 5]


@pytest.mark.parametrize("network", [BoardNet(8, 3), AxialNet(8, 2)], ids=lambda network: type(network).__name__)
def test_training_moves_all_batch_statistics_and_a_loss_of_all_outputs_every_parameter(network):
    game = Shape((6, 6, 2), 37)
    network = network.for_game(game)
    variables = network.init(jax.random.key(0), game)
    observations = _observations(game, 16)

    def loss(params):
        output, following = network.apply(variables | {"params": params}, observations, train=True)
        return sum(jnp.sum((leaf - 1) ** 2) for leaf in jax.tree.leaves(output)), following

    gradient, following = jax.jit(jax.grad(loss, has_aux=True))(variables["params"])
    for path, leaf in jax.tree_util.tree_leaves_with_path(gradient):
        assert np.isfinite(leaf).all(), path
        assert np.any(leaf), path
    moved = jax.tree.map(
        lambda old, new: not np.array_equal(old, new), variables["batch_stats"], following["batch_stats"]
    )
    assert jax.tree.all(moved)


class Nothing(nnx.Module):
    def __call__(self, features, *_):
        return jnp.zeros_like(features)


class WithoutFurtherHeads(BoardNet):
    def module(self, rngs):
        module = super().module(rngs)
        for head in ("soft_policy", "opponent_policy", "plies_left", "short_term", "value_error"):
            setattr(module, head, Nothing())
        return module


def test_a_search_does_not_compute_the_outputs_that_it_does_not_read():
    game = GAMES["brandub"]

    def flops(network, read):
        network = network.for_game(game)
        variables = jax.eval_shape(lambda: network.init(jax.random.key(0), game))
        observations = jax.ShapeDtypeStruct((8, *game.observation_shape), jnp.float32)
        evaluate = jax.jit(lambda variables, observations: read(network.apply(variables, observations, False)[0]))
        return evaluate.lower(variables, observations).compile().cost_analysis()["flops"]

    def searched(output):
        return output.prior_logits, output.value

    of_a_search = flops(BoardNet(8, 3), searched)
    assert of_a_search == flops(WithoutFurtherHeads(8, 3), searched)
    assert of_a_search < flops(BoardNet(8, 3), lambda output: output)


def test_it_needs_a_board_and_a_channel_beside_the_pooled_one():
    with pytest.raises(ValueError, match=r"BoardNet\(.* needs observations .* got shape \(4,\); --network mlp"):
        make_network("board", Shape((4,), 2), width=8, depth=1)
    with pytest.raises(ValueError, match="board needs a width of at least 2, got 1"):
        make_network("board", GAMES["tictactoe"], width=1, depth=1)


@pytest.mark.parametrize("platform", ["cuda", "tpu"])
def test_it_lowers_for_accelerators(platform):
    game = GAMES["connect_four"]
    network = make_network("board", game, width=8, depth=3, precision="bfloat16")
    variables = jax.eval_shape(lambda: network.init(jax.random.key(0), game))
    traced = _apply(network, train=True).trace(variables, _observations(game))
    assert "f64" not in traced.lower(lowering_platforms=(platform,)).as_text()
