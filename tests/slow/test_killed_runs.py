import pytest
from killing import KILLED, assert_equal_runs, train_killed, train_to_the_end

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("game", ["connect2", "tictactoe"])
def test_ten_kills_at_random_moments_leave_no_trace(game, tmp_path):
    options = [f"--{name}={value}" for name, value in {**KILLED, "iterations": 600, "replay-size": 256}.items()]
    train_to_the_end(game, tmp_path / "straight", options)
    assert train_killed(game, tmp_path / "killed", options, kills=10, longest=1.5, seed=1) == 10
    assert_equal_runs(tmp_path / "straight", tmp_path / "killed")
