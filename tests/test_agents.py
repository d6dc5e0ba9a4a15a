import jax
import numpy as np
import pytest
from small_run import SMALL

import azjax
from azjax.agents import (
    LEVELS,
    every_checkpoint,
    game_of,
    is_trained,
    load_opponent,
    load_player,
    load_search_spec,
    load_trained,
    split_level,
)
from azjax.core.errors import InputError, RunError
from azjax.evaluation import choose, play_match, policy_player, start_memory
from azjax.games.registry import make
from azjax.runs import train
from azjax.search import SearchHyper, evaluators, make_policy

GAME = make("connect2")


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "agent"
    train(GAME, SMALL, folder)
    return str(folder)


def _choose(player, text="____"):
    states = jax.tree.map(lambda leaf: leaf[None], GAME.from_text(text))
    return jax.device_get(choose(player, jax.random.key(0), states))


def test_the_game_of_a_run_folder(run):
    assert is_trained(run)
    assert game_of(run) == GAME
    assert game_of("random") is None


def test_the_levels_of_a_trained_agent(run):
    beginner, easy, medium, hard = (_choose(load_player(run, level=level)) for level in LEVELS)
    # Beginner draws from the fourth root of the network's policy, easy from the policy, medium takes its best move.
    flat = easy.probabilities**0.25
    np.testing.assert_allclose(beginner.probabilities, flat / flat.sum(axis=1, keepdims=True), rtol=1e-4)
    np.testing.assert_allclose(easy.probabilities, easy.preferences)
    assert easy.probabilities[0].max() < 1
    np.testing.assert_allclose(medium.preferences, easy.preferences, atol=1e-6)
    np.testing.assert_array_equal(medium.probabilities[0], np.arange(4) == easy.preferences[0].argmax())
    # Hard searches: its preferences are shares of 64 visits.
    np.testing.assert_allclose(hard.preferences[0] * 64, np.round(hard.preferences[0] * 64), atol=1e-4)
    assert hard.preferences[0].sum() == pytest.approx(1)


def test_a_certain_checkpoint_can_be_named(run):
    latest, last, earlier = (_choose(load_player(f"{run}{at}", level="easy")) for at in ("", "@4", "@2"))
    np.testing.assert_array_equal(latest.probabilities, last.probabilities)
    assert not np.array_equal(latest.probabilities, earlier.probabilities)
    best = _choose(load_player(f"{run}@best", level="easy"))
    assert any(np.array_equal(best.probabilities, other.probabilities) for other in (last, earlier))


def test_the_players_by_name():
    assert load_player("random", GAME).name == "random"
    np.testing.assert_array_equal(_choose(load_player("optimal", GAME)).probabilities, [[0, 0.5, 0.5, 0]])
    uniform = load_player("uniform:50", GAME)
    assert uniform.name == "uniform:50"
    assert _choose(uniform).probabilities[0].argmax() in (1, 2)
    assert load_player("rollout:8", GAME).name == "rollout:8"
    uct = load_player("uct:60", GAME)
    assert uct.name == "uct:60"
    assert _choose(uct).probabilities[0].argmax() in (1, 2)


def test_searches_take_the_options_solver_and_reuse_tree(run):
    options = {"solver": True, "reuse_tree": True}
    assert load_player("uniform:50", GAME, **options).name == "uniform:50 + solver + reused tree"
    trained = load_player(run, **options)
    assert trained.name == "network + 64 simulations + solver + reused tree"
    with pytest.raises(ValueError, match=r"solver is for players that search; .*agent:easy does not"):
        load_player(run, level="easy", **options)
    state = jax.tree.map(lambda leaf: leaf[None], GAME.from_text("____"))
    assert start_memory(trained, state) is not None
    # 64 simulations are enough to prove that the start of connect2 is won.
    assert _choose(trained).value[0] == 1
    assert load_player("uct:60", GAME, solver=True).name == "uct:60 + solver"


@pytest.mark.parametrize("spec", ["random", "optimal", "optimal:file"])
@pytest.mark.parametrize("option", ["solver", "reuse_tree"])
def test_options_of_a_search_are_refused_for_players_without_one(spec, option):
    with pytest.raises(ValueError, match=f"solver and reuse_tree are for players that search; {spec} does not"):
        load_player(spec, GAME, **{option: True})


def test_the_search_options_of_a_match_are_those_of_its_trained_agents(run):
    options = {"solver": True, "reuse_tree": True, "policy": "gumbel", "leaves_per_step": 4}
    player = load_opponent(f"{run}:16", **options)
    assert player.name == f"{run}:16 + gumbel + solver + reused tree + 4 leaves a step"
    assert load_opponent(f"{run}:16").name == f"{run}:16"
    assert load_opponent(f"{run}:easy", **options).name == f"{run}:easy"
    search = player.policy.policy
    assert type(search).__name__ == "GumbelAlphaZero"
    assert (search.num_simulations, search.leaves_per_step, search.solver) == (16, 4, True)
    starts = jax.tree.map(lambda leaf: leaf[None], GAME.from_text("____"))
    assert start_memory(player, starts) is not None
    assert load_opponent("random", GAME, **options).name == "random"
    with pytest.raises(ValueError, match="leaves_per_step must divide num_simulations = 18, got 4"):
        load_opponent(f"{run}:18", leaves_per_step=4)


@pytest.mark.parametrize(("seconds", "name"), [(None, "gtp:true"), (10.0, "gtp:true"), (0.5, "gtp:true, 0.5 s")])
def test_a_program_is_named_with_its_seconds_where_they_are_not_the_default(seconds, name):
    assert load_opponent("gtp:true", GAME, seconds=seconds).name == name


@pytest.mark.slow
def test_a_trained_agent_without_a_number_of_simulations_searches_for_a_time(run):
    timed = load_opponent(run, seconds=0.01)
    match = play_match(GAME, timed, load_opponent("random", GAME, seconds=0.01), 4, jax.random.key(0))
    assert (match.first, match.second) == (f"{run}, 0.01 s", "random")
    # Its moves in games 0 and 2, which it begins, and 1 and 3.
    moves = sum((len(actions) + 1 - number % 2) // 2 for number, actions in enumerate(match.actions))
    assert [len(seconds) for seconds in match.move_seconds] == [moves, 0]
    assert load_opponent(f"{run}:16", seconds=0.01).policy.policy.num_simulations == 16
    assert (own := load_opponent(f"{run}:0.5s", seconds=0.01, solver=True)).name == f"{run} + solver, 0.5 s"
    assert own.seconds == 0.5
    assert load_opponent(f"{run}:0.5s", leaves_per_step=5).player.policy.policy.leaves_per_step == 5
    assert load_opponent(f"{run}:easy", seconds=0.01).policy.temperature == 1
    assert load_opponent(run, seconds=0.01, reuse_tree=True).name == f"{run} + reused tree, 0.01 s"
    with pytest.raises(ValueError, match="a search for a time goes without Gumbel's policy"):
        load_opponent(run, seconds=0.01, policy="gumbel")
    with pytest.raises(ValueError, match="seconds must be above 0, got -1"):
        load_opponent(run, seconds=-1)


def test_uct_keeps_its_tree_too():
    starts = jax.tree.map(lambda leaf: leaf[None], GAME.from_text("____"))
    assert start_memory(load_player("uct:8", GAME), starts) is None
    assert start_memory(load_player("uct:8", GAME, reuse_tree=True), starts).max_nodes == 25


@pytest.mark.slow
def test_an_agent_of_gumbel_searches_with_the_scale_of_values_of_its_training(tmp_path):
    config = SMALL.replace(policy="gumbel", value_scale=0.5, rescale_values=False, max_num_considered_actions=2)
    train(GAME, config, tmp_path / "run")
    agent = load_trained(str(tmp_path / "run"))
    policy = make_policy("gumbel", GAME, evaluators.network(agent.network, GAME), 16, max_num_considered_actions=2)
    own, usual = (
        _choose(policy_player(policy, agent.variables, hyper=hyper)).preferences
        for hyper in (SearchHyper(value_scale=0.5, rescale_values=False), SearchHyper())
    )
    np.testing.assert_array_equal(_choose(load_player(str(tmp_path / "run"), num_simulations=16)).preferences, own)
    assert not np.allclose(own, usual)
    assert load_player(str(tmp_path / "run")).policy.policy.max_num_considered_actions == 2


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("uniform", "unknown player 'uniform'; players: a run folder"),
        ("line:cat", "line:cat plays in matches alone, and there it needs --game GAME"),
        ("uniform:x", "SIMULATIONS must be a whole number of at least 1, got 'x'"),
        ("uniform:-1", "SIMULATIONS must be a whole number of at least 1, got '-1'"),
        ("optimal:no/such/file", "there is no file no/such/file"),
        ("optimal:", "needs a file of `azjax solve --output FILE` after the colon"),
        ("no/such/folder", "there is no run folder no/such/folder"),
        ("no/such/folder:400", "there is no run folder no/such/folder$"),
        ("gtp:./engine", "gtp:./engine plays in matches alone, and there it needs --game GAME"),
        ("conect2:easy", r"unknown player 'conect2:easy' \(did you mean connect2\?\); players: a run folder"),
    ],
)
def test_an_unknown_player_is_refused(spec, message):
    with pytest.raises(ValueError, match=message):
        load_player(spec, GAME)


@pytest.mark.usefixtures("types_unchecked")
def test_a_player_is_loaded_by_a_text():
    with pytest.raises(InputError, match="a player is loaded by its name, a text such as 'tictactoe'; got None"):
        load_player(None, GAME)


def test_a_player_by_name_needs_a_game():
    with pytest.raises(ValueError, match="a player by name needs a game too"):
        load_player("random")


def test_an_agent_does_not_play_another_game(run):
    with pytest.raises(ValueError, match=r"was trained on .*connect2.* and cannot play .*tictactoe"):
        load_player(run, make("tictactoe"))


def test_an_agent_plays_by_other_rules_of_its_game_but_not_with_another_board():
    third = make("brandub", repetitions=3)
    states = jax.tree.map(lambda leaf: leaf[None], third.init(jax.random.key(0)))
    choice = choose(load_player("brandub:medium", third), jax.random.key(0), states)
    assert choice.probabilities[0] @ third.legal_action_mask(third.init(jax.random.key(0))) == 1
    assert load_search_spec("brandub", third).policy.game == third
    with pytest.raises(ValueError, match=r"santorini_3x3 was trained on .* and cannot play"):
        load_player("santorini_3x3:easy", make("santorini", size=5))


def test_unknown_levels_and_missing_checkpoints_are_refused(run):
    with pytest.raises(ValueError, match="unknown level 'godlike'; available: beginner, easy, medium, hard"):
        load_player(run, level="godlike")
    with pytest.raises(ValueError, match="num_simulations must be at least 1, got 0"):
        load_player(run, num_simulations=0)
    with pytest.raises(ValueError, match="unknown policy 'minimax'; available: alphazero, gumbel, uct"):
        load_player(run, policy="minimax")
    with pytest.raises(ValueError, match="policy is for trained agents; uct:10 is not one"):
        load_player("uct:10", GAME, policy="gumbel")
    with pytest.raises(RunError, match="has no checkpoint 3; available: 2, 4"):
        load_player(f"{run}@3")


def test_load_player_is_a_public_name():
    assert azjax.load_player is load_player


def test_all_checkpoints_of_a_run_can_be_named(run):
    steps = [spec.rpartition("@")[2] for spec in every_checkpoint(f"{run}@all")]
    assert [load_player(spec).name for spec in every_checkpoint(f"{run}@all")] == ["network + 64 simulations"] * len(
        steps
    )
    assert sorted(steps, key=int) == steps
    assert len(steps) > 1
    assert every_checkpoint("uct:10") == ["uct:10"]
    assert every_checkpoint(f"{run}@best") == [f"{run}@best"]


def test_a_spec_may_end_with_a_level_or_simulations(run):
    assert split_level(f"{run}:400") == (str(run), "400")
    assert split_level("uct:400") == ("uct:400", "")
    assert load_player(f"{run}:400").name == "network + 400 simulations"
    assert load_player("connect2:medium", num_simulations=3).name == "network"
    assert load_player(f"{run}@best:7").policy.policy.num_simulations == 7
    assert game_of("connect2:easy") == make("connect2")
    with pytest.raises(
        ValueError, match="connect2:0x: after the colon comes a number of simulations or beginner, easy, medium"
    ):
        load_player("connect2:0x")
    for spec in ("connect2:64:64", "connect2:"):
        after = spec.partition(":")[2]
        with pytest.raises(
            ValueError, match=f"^connect2: after the colon comes a number or beginner, .*got '{after}'$"
        ):
            load_player(spec)
    with pytest.raises(ValueError, match="num_simulations must be at least 1, got 0"):
        load_player("connect2:0")


@pytest.mark.parametrize("spec", ["uct:5", "random", "optimal"])
def test_a_number_of_simulations_is_for_trained_agents(spec):
    with pytest.raises(InputError, match=f"num_simulations is for trained agents; {spec} is not one"):
        load_player(spec, make("connect2"), num_simulations=400)
