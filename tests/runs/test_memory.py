import dataclasses
import types
from unittest import mock

import jax
import pytest
from small_run import SMALL

from azjax.core.errors import MemoryInUseError, RunError
from azjax.games.registry import make
from azjax.runs.memory import Memory, MemoryNeed, memory_need, memory_of_machine
from azjax.training import init

GAME = make("connect2")
NEED = MemoryNeed(replay=3_000_000_000, learner=2_000_000, trees=500)


def _need(config):
    return memory_need(GAME, config, jax.eval_shape(lambda: init(GAME, config, 0, config.hyper)))


def test_replay_grows_with_its_size_and_trees_with_games_and_simulations():
    small = _need(SMALL)
    more_replay = _need(dataclasses.replace(SMALL, replay_size=4 * SMALL.replay_size))
    assert 3.9 * small.replay < more_replay.replay <= 4 * small.replay
    assert (more_replay.trees, more_replay.learner) == (small.trees, small.learner)
    assert 1.9 * small.trees < _need(dataclasses.replace(SMALL, num_games=8)).trees <= 2 * small.trees
    assert _need(dataclasses.replace(SMALL, num_simulations=400)).trees > 50 * small.trees
    # A tree that is kept has room for two more searches.
    kept = _need(dataclasses.replace(SMALL, num_simulations=400, reuse_tree=True))
    assert 2.9 < kept.trees / _need(dataclasses.replace(SMALL, num_simulations=400)).trees < 3.1


def test_devices_share_replay_games_and_trees_and_each_has_the_weights():
    config = dataclasses.replace(SMALL, num_games=8, replay_size=128)
    state = jax.eval_shape(lambda: init(GAME, config, 0, config.hyper))
    one, four = (memory_need(GAME, config, state, count) for count in (1, 4))
    assert four.replay == one.replay // 4
    assert one.trees / 4 <= four.trees < 1.1 * one.trees / 4
    assert 0.9 * one.learner < four.learner < one.learner


def test_temporary_arrays_are_those_of_xla_and_donated_arrays_count_once():
    analysis = types.SimpleNamespace(
        argument_size_in_bytes=3_002_000_000,
        output_size_in_bytes=3_002_000_100,
        alias_size_in_bytes=3_002_000_000,
        temp_size_in_bytes=1_000_000,
    )
    compiled = mock.Mock(jax.stages.Compiled, memory_analysis=lambda: analysis)
    need = NEED.with_temporary(compiled)
    assert need.total == 3_003_000_100
    assert need.temporary == 999_600


def test_one_byte_too_little_is_refused_naming_what_to_lower():
    NEED.check(SMALL, Memory(NEED.total, NEED.total))
    with pytest.raises(RunError) as raised:
        NEED.check(SMALL, Memory(NEED.total - 1, NEED.total))
    assert str(raised.value) == (
        "the memory is too small: 3.0 GB are free, and about 3.0 GB are needed: replay 3.0 GB (replay_size = 64), "
        "search trees 0.5 kB (num_games = 4, num_simulations = 4), weights, optimizer and games 2.0 MB; "
        "lower replay_size"
    )


@pytest.mark.parametrize(("total", "is_in_use"), [(1.2, False), (1.3, True)])
def test_a_machine_with_room_but_for_others_is_told_apart(total, is_in_use):
    with pytest.raises(RunError) as raised:
        NEED.check(SMALL, Memory(NEED.total - 1, int(total * NEED.total)))
    assert isinstance(raised.value, MemoryInUseError) == is_in_use


@pytest.mark.parametrize(("restarts", "fields"), [(0, "batch_size or"), (64, "batch_size, restart_candidates or")])
def test_what_makes_temporary_arrays_is_named(restarts, fields):
    need = dataclasses.replace(NEED, temporary=10**12)
    config = dataclasses.replace(SMALL, restart_candidates=restarts)
    assert need.explain(config).endswith(f"; lower num_games, {fields} width")


def _machine(root, groups, **files):
    """A machine with 8 GB free, the lines of /proc/self/cgroup, and files below /sys/fs/cgroup."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/meminfo").write_text("MemTotal: 16000000 kB\nMemAvailable: 8000000 kB\n")
    (root / "proc/self/cgroup").write_text(groups)
    for path, content in files.items():
        file = root / "sys/fs/cgroup" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(content)
    return root


def test_without_a_limit_the_memory_of_the_machine_counts(tmp_path):
    files = {"job/memory.max": "max\n", "job/memory.current": "5\n", "job/memory.stat": "inactive_file 1\n"}
    assert memory_of_machine(_machine(tmp_path, "0::/job\n", **files)) == (8_192_000_000, 16_384_000_000)


def test_the_limit_of_a_parent_group_counts_and_cached_files_do_not(tmp_path):
    files = {"job/memory.max": "3000000000\n", "job/memory.current": "2000000000\n"}
    files |= {"job/memory.stat": "anon 7\ninactive_file 500000000\n", "job/step/memory.max": "max\n"}
    assert memory_of_machine(_machine(tmp_path, "0::/job/step\n", **files)) == (1_500_000_000, 3_000_000_000)


def test_version_1_of_control_groups_is_read_even_if_the_path_is_missing(tmp_path):
    files = {"memory/memory.limit_in_bytes": "2000000\n", "memory/memory.usage_in_bytes": "1500000\n"}
    files |= {"memory/memory.stat": "total_inactive_file 0\n"}
    groups = "5:devices:/\n4:memory:/docker/1234\n0::/\n"
    assert memory_of_machine(_machine(tmp_path, groups, **files)) == (500_000, 2_000_000)


def test_a_group_over_its_limit_has_nothing_left(tmp_path):
    files = {"memory.max": "1\n", "memory.current": "2\n", "memory.stat": "inactive_file 0\n"}
    assert memory_of_machine(_machine(tmp_path, "0::/\n", **files)) == (0, 1)
