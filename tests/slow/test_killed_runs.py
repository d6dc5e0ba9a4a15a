import pytest
from killing import KILLED, assert_equal_runs, train_killed, train_to_the_end

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(("game", "kills"), [("connect2", 50), ("tictactoe", 10)])
def test_a_run_killed_at_random_times_and_during_checkpoints_ends_with_the_same_bits(game, kills, tmp_path, tries):
    kills = tries(kills)
    options = [f"--{name}={value}" for name, value in {**KILLED, "iterations": 20 * kills, "replay-size": 256}.items()]
    train_to_the_end(game, tmp_path / "straight", options)
    assert train_killed(game, tmp_path / "killed", options, kills=kills, longest=0.7, seed=1) == kills
    assert_equal_runs(tmp_path / "straight", tmp_path / "killed")
