"""The agents that come with the package, and the format of their files."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from studies import load_study

import azjax
from azjax import packaged
from azjax.agents import LEVELS, game_of, is_trained
from azjax.evaluation import archive, choose, exact_report, solve
from azjax.games.registry import make
from azjax.networks import make_network
from azjax.training.schedules import simulations_in_words

GAME = make("connect2")
NETWORK = {"name": "mlp", "width": 8, "depth": 1}


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder of packaged agents."""
    monkeypatch.setattr(packaged.archive, "FOLDER", tmp_path)
    return tmp_path


def _variables(network=NETWORK, game=GAME):
    return make_network(game=game, **network).init(jax.random.key(0), game)


def test_an_agent_comes_back_from_its_file(folder):
    variables = _variables()
    assert packaged.packaged() == []
    assert packaged.save_agent("mine", GAME, NETWORK, variables, c_puct=1.5) == folder / "mine.npz"
    assert packaged.packaged() == ["mine"]
    agent = packaged.load_agent("mine")
    assert (agent.game, agent.network, agent.hyper.c_puct) == (GAME, make_network(game=GAME, **NETWORK), 1.5)
    assert jax.tree.structure(agent.variables) == jax.tree.structure(variables)
    for path, leaf in jax.tree_util.tree_leaves_with_path(variables):
        back = agent.variables
        for entry in path:
            back = back[entry.key]
        assert back.dtype == np.float32
        # Matrices are rounded to bfloat16: 8 bits.
        np.testing.assert_array_equal(back, leaf.astype(jnp.bfloat16).astype(jnp.float32) if leaf.ndim > 1 else leaf)


def test_batch_statistics_are_kept(folder):
    game, network = make("tictactoe"), {"name": "resnet", "width": 4, "depth": 1}
    variables = _variables(network, game)
    variables["batch_stats"]["stem"]["norm"]["mean"] += 3.25
    packaged.save_agent("mine", game, network, variables, c_puct=1.25)
    np.testing.assert_array_equal(packaged.load_agent("mine").variables["batch_stats"]["stem"]["norm"]["mean"], 3.25)


def test_weights_that_are_not_finite_are_refused(folder):
    variables = _variables()
    variables["params"]["policy"]["kernel"] = np.full((8, 4), np.nan, np.float32)
    with pytest.raises(ValueError, match="params/policy/kernel holds a weight that is not finite"):
        packaged.save_agent("mine", GAME, NETWORK, variables, c_puct=1.25)
    assert packaged.packaged() == []


def test_an_agent_with_weights_that_are_not_finite_is_not_loaded(folder, monkeypatch):
    variables = _variables()
    variables["params"]["value"]["bias"] = np.full(1, np.inf, np.float32)
    with monkeypatch.context() as unchecked:
        unchecked.setattr(packaged.archive, "_packed", lambda name, array: array)
        packaged.save_agent("mine", GAME, NETWORK, variables, c_puct=1.25)
    with pytest.raises(ValueError, match=r"mine\.npz: params/value/bias holds a weight that is not finite"):
        packaged.load_agent("mine")


def test_a_damaged_file_is_refused(folder):
    path = packaged.save_agent("mine", GAME, NETWORK, _variables(), c_puct=1.25)
    with np.load(path) as file:
        content = dict(file)
    content["params/policy/kernel"] = content["params/policy/kernel"] ^ np.uint8(1)
    np.savez(path, **content)
    with pytest.raises(ValueError, match=r"mine\.npz is damaged: its values are not those that were written"):
        packaged.load_agent("mine")
    manifest = json.loads(str(content["manifest"]))
    archive.save_archive(path, "solution", GAME, manifest | {"kind": "solution"}, {})
    with pytest.raises(ValueError, match=r"mine\.npz is no agent file, or is damaged: it is of kind solution"):
        packaged.game_of_agent("mine")


@pytest.mark.slow_except("connect2", "connect_four", "tictactoe")
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.slow] if name.startswith("santorini_3") else [])
        for name in packaged.packaged()
    ],
)
def test_every_packaged_agent_plays_its_game_at_all_levels_and_has_a_card(name):
    game = game_of(name)
    assert is_trained(name)
    states = jax.vmap(game.init)(jax.random.split(jax.random.key(0), 2))
    for level in LEVELS:
        player = azjax.load_player(name, game, level=level, num_simulations=4)
        choice = choose(player, jax.random.key(1), states)
        np.testing.assert_allclose(choice.probabilities.sum(axis=1), 1, rtol=1e-5)
        legal = jax.vmap(game.legal_action_mask)(states)
        assert not (np.asarray(choice.probabilities)[~np.asarray(legal)] > 0).any()
    card = (packaged.archive.FOLDER / f"{name}.md").read_text()
    for row in ("Command", "Commit", "Time", "Hardware", "Games", "Strength"):
        assert f"| {row} |" in card or f"## {row}" in card


def test_all_agents_together_are_small():
    assert sum(path.stat().st_size for path in packaged.archive.FOLDER.glob("*.npz")) < 8e6


@pytest.mark.parametrize(("name", "positions"), [("tictactoe", 4520), ("connect2", 23), ("santorini_2x2", 1311)])
def test_packaged_agents_of_small_games_make_no_mistake(name, positions):
    report = exact_report(azjax.load_player(name, level="medium"), solve(game_of(name)), jax.random.key(0))
    assert (report.mistakes.states, report.mistakes.count) == (positions, 0)


@pytest.mark.parametrize("name", packaged.packaged())
def test_an_agent_is_what_the_script_that_makes_it_trains(name):
    card = (packaged.archive.FOLDER / f"{name}.md").read_text()
    game = packaged.game_of_agent(name)
    config = load_study("study").config_of(name, game)
    network = config.replace(precision="float32").make_network(game)
    positions = config.iterations * config.num_games * config.steps_per_iteration
    assert f"| Network | {network} |" in card
    assert f"| Training | self-play alone: {config.policy}, {simulations_in_words(config)} simulations a move |" in card
    assert f"{positions:,} positions, {config.iterations:,} iterations |" in card
