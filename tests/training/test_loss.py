import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from small_run import SMALL

from azjax.core.errors import InputError
from azjax.games.registry import make
from azjax.networks import NetworkOutput
from azjax.training import init, make_iteration
from azjax.training.config import Config
from azjax.training.hyper import Hyper
from azjax.training.loss import ALPHAZERO_LOSS, LossTerm, loss, random_symmetry, value_target
from azjax.training.replay import Examples

GAME = make("tictactoe")


def _examples():
    texts = ["XO_______", "X________", "XO__X____"]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *[GAME.from_text(text) for text in texts])
    legal = jax.vmap(GAME.legal_action_mask)(states)
    policy = legal / legal.sum(axis=1, keepdims=True)
    outcome, value = jnp.array([1.0, -1.0, 0.0]), jnp.array([0.2, 0.0, -1.0])
    return Examples(states, policy.astype(jnp.float32), outcome, value, jnp.array([False, False, True]))


def _loss(network, params, hyper, examples, terms=ALPHAZERO_LOSS):
    """`azjax.training.loss.loss` with symmetries, jitted."""
    key = jax.random.key(0)
    return jax.jit(lambda params: loss(params, {}, Config(), hyper, GAME, network, key, examples, terms))(params)


class _Fixed:
    """A network of constant logits and values."""

    def __init__(self, logits, value, auxiliary=()):
        self.logits, self.value, self.auxiliary = logits, value, dict(auxiliary)

    def init(self, key, game):
        return {"params": {}}

    def apply(self, variables, observations, train):
        batch = len(observations)
        auxiliary = {name: jnp.full(batch, output) for name, output in self.auxiliary.items()}
        return NetworkOutput(jnp.tile(self.logits, (batch, 1)), jnp.full(batch, self.value), auxiliary), variables


def test_the_loss_of_a_known_network_is_the_sum_of_its_three_terms():
    """Uniform logits: the policy loss is the mean of log(number of legal moves)."""
    network = _Fixed(jnp.zeros(9), 0.5)
    params = {"w": jnp.array([1.0, 2.0])}
    hyper = Hyper(l2=0.1)
    total, (_, metrics) = _loss(network, params, hyper, _examples())
    policy_loss = np.mean(np.log([7, 8, 6]))
    value_loss = np.mean([0.25, 2.25, 2.25])  # the third is proven to be lost
    assert float(metrics["policy_loss"]) == pytest.approx(policy_loss, rel=1e-6)
    assert float(metrics["target_entropy"]) == pytest.approx(policy_loss, rel=1e-6)
    assert float(metrics["value_loss"]) == pytest.approx(value_loss, rel=1e-6)
    assert float(total) == pytest.approx(policy_loss + value_loss + 0.1 * 5, rel=1e-6)


def test_accuracies_are_the_shares_of_examples_whose_targets_the_network_agrees_with():
    """The network prefers the center, which no symmetry moves: the target of two examples, occupied in the third."""
    examples = _examples()
    targets = jnp.zeros((3, 9)).at[jnp.arange(3), jnp.array([4, 4, 8])].set(1.0)
    network = _Fixed(jnp.zeros(9).at[4].set(1.0), 0.8)
    metrics = _loss(network, {}, Hyper(l2=0.0), dataclasses.replace(examples, policy=targets))[1][1]
    assert float(metrics["policy_accuracy"]) == pytest.approx(2 / 3)
    # The first of the targets 1, -1 and -1.
    assert float(metrics["value_accuracy"]) == pytest.approx(1 / 3)


def test_logits_of_illegal_actions_do_not_enter_the_loss():
    examples = jax.tree.map(lambda leaf: leaf[:1], _examples())
    losses = []
    for corner in (0.0, 50.0):
        # XO_______ and its symmetries always hold two stones: raise the logits of all but the empty squares.
        def apply(variables, observations, train, corner=corner):
            occupied = observations.sum(axis=-1).reshape(len(observations), 9)
            return NetworkOutput(corner * occupied, jnp.zeros(len(observations))), variables

        network = _Fixed(None, None)
        network.apply = apply
        losses.append(float(_loss(network, {}, Hyper(), examples)[1][1]["policy_loss"]))
    assert losses[0] == losses[1] == pytest.approx(np.log(7))


def test_a_random_symmetry_moves_the_actions_with_the_board():
    """The square of each slot's action on the turned board is empty exactly where it was before."""
    states = jax.tree.map(lambda leaf: jnp.repeat(leaf, 64, axis=0), _examples().states)
    turned, actions, valid = jax.jit(random_symmetry, static_argnums=0)(GAME, jax.random.key(0), states)
    turned_mask = jax.vmap(GAME.legal_action_mask)(turned)
    np.testing.assert_array_equal(jnp.take_along_axis(turned_mask, actions, axis=1), valid)
    texts = {GAME.to_text(jax.tree.map(lambda leaf: leaf[i], turned)) for i in range(64)}
    assert texts == {
        "XO_______",
        "_OX______",
        "X__O_____",
        "__X__O___",
        "___O__X__",
        "_____O__X",
        "______XO_",
        "_______OX",
    }


@pytest.mark.parametrize(("fraction", "targets"), [(0.0, [1.0, -1.0, -1.0]), (0.25, [0.8, -0.75, -1.0])])
def test_the_value_target_mixes_result_and_search_and_is_the_true_value_where_proven(fraction, targets):
    """0.75 * 1 + 0.25 * 0.2 = 0.8; 0.75 * -1 + 0 = -0.75; the third is proven lost."""
    target = value_target(Hyper(root_value_fraction=fraction), _examples())
    np.testing.assert_allclose(target, targets, rtol=1e-6)


def test_without_symmetries_a_position_is_learned_from_as_it_is():
    """X on a1 has four symmetries, and one observation without them."""
    examples = jax.tree.map(lambda leaf: jnp.repeat(leaf[1:2], 32, axis=0), _examples())
    network, counts = _Fixed(jnp.zeros(9), 0.0), []

    def apply(variables, observations, train):
        counts.append(np.unique(np.asarray(observations), axis=0).shape[0])
        return NetworkOutput(jnp.zeros((len(observations), 9)), jnp.zeros(len(observations))), variables

    network.apply = apply
    for symmetries in (True, False):
        loss({}, {}, Config(symmetries=symmetries), Hyper(), GAME, network, jax.random.key(0), examples)
    assert counts == [4, 1]


def _draw_loss(output, targets, params, hyper):
    error = jnp.mean((output.auxiliary["draw"] - (targets.outcome == 0)) ** 2)
    return 0.5 * error, {"draw_loss": error}


DRAW = LossTerm("draw", _draw_loss, auxiliary=("draw",))


def test_a_term_on_an_auxiliary_output_adds_to_the_others():
    """One of three outcomes is a draw: the error of 0.25 is (2 * 0.25^2 + 0.75^2) / 3."""
    network = _Fixed(jnp.zeros(9), 0.5, {"draw": 0.25})
    examples = dataclasses.replace(_examples(), proven=jnp.zeros(3, bool))
    without, (_, metrics) = _loss(network, {}, Hyper(), examples)
    total, (_, more_metrics) = _loss(network, {}, Hyper(), examples, (*ALPHAZERO_LOSS, DRAW))
    error = (2 * 0.25**2 + 0.75**2) / 3
    assert float(more_metrics["draw_loss"]) == pytest.approx(error)
    assert float(total) == pytest.approx(float(without) + 0.5 * error)
    assert more_metrics.keys() == metrics.keys() | {"draw_loss"}


@pytest.mark.parametrize(("auxiliary", "given"), [({}, "none"), ({"lead": 0.0, "depth": 1.0}, "depth, lead")])
def test_a_term_whose_auxiliary_output_is_missing_is_refused(auxiliary, given):
    network = _Fixed(jnp.zeros(9), 0.5, auxiliary)
    message = f"the loss term 'draw' needs the auxiliary output 'draw'; the network gives: {given}"
    with pytest.raises(InputError, match=message):
        _loss(network, {}, Hyper(), _examples(), (*ALPHAZERO_LOSS, DRAW))


def test_the_auxiliary_outputs_of_a_term_are_a_sequence_of_names():
    assert LossTerm("draw", DRAW.function, auxiliary=["draw"]) == LossTerm("draw", DRAW.function, auxiliary=("draw",))
    with pytest.raises(InputError, match="the loss term 'draw': auxiliary must be a sequence of names, got 'draw'"):
        LossTerm("draw", DRAW.function, auxiliary="draw")


def test_a_metric_that_is_there_already_is_refused():
    term = LossTerm("again", lambda output, targets, params, hyper: (0.0, {"value_loss": 0.0}))
    with pytest.raises(InputError, match="the metric 'value_loss' is there already"):
        _loss(_Fixed(jnp.zeros(9), 0.5), {}, Hyper(), _examples(), (*ALPHAZERO_LOSS, term))


@pytest.mark.parametrize(
    ("name", "message"),
    [
        *((name, f"the metric '{name}' is there already") for name in ("loss", "games")),
        *((name, f"the metric '{name}' is one of a run") for name in ("iteration", "mistakes", "score_random")),
    ],
)
def test_a_metric_of_the_run_is_not_that_of_a_term(name, message):
    term = LossTerm("own", lambda output, targets, params, hyper: (0.0, {name: jnp.float32(0)}))
    iteration = make_iteration(GAME, SMALL, loss_terms=(*ALPHAZERO_LOSS, term))
    state = jax.eval_shape(lambda: init(GAME, SMALL, 0, SMALL.hyper))
    with pytest.raises(InputError, match=message):
        jax.eval_shape(iteration, state, SMALL.hyper)


@pytest.mark.parametrize(
    ("terms", "got"), [((), "none"), (ALPHAZERO_LOSS + ALPHAZERO_LOSS[:1], "value, policy, l2, value")]
)
def test_no_terms_and_two_of_one_name_are_refused(terms, got):
    with pytest.raises(InputError, match=f"a loss has one term or more, each with a name of its own; got {got}"):
        make_iteration(GAME, SMALL, loss_terms=terms)


@pytest.mark.parametrize(
    "returned",
    [jnp.float32(0), (jnp.zeros(3), {}), (jnp.float32(0), [1.0]), (jnp.float32(0), {"told": "text"})],
    ids=str,
)
def test_a_term_that_returns_something_else_is_refused(returned):
    term = LossTerm("odd", lambda output, targets, params, hyper: returned)
    with pytest.raises(InputError, match="the loss term 'odd' must return a scalar and a dict of scalars"):
        _loss(_Fixed(jnp.zeros(9), 0.5), {}, Hyper(), _examples(), (term,))


@pytest.mark.usefixtures("types_unchecked")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("t", 5), "the loss term 't': function must be callable, got 5"),
        (("t", len, 5), "the loss term 't': auxiliary must be a sequence of names, got 5"),
    ],
)
def test_a_term_of_other_types_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        LossTerm(*arguments)
