import json
import resource
import signal

import jax
import numpy as np
import pytest

import azjax.games
from azjax.evaluation import choose, game_of_table, load_solution, optimal_player, save_solution
from azjax.evaluation.archive import digest
from azjax.evaluation.solution_file import check_can_save

SANTORINI = azjax.games.make("santorini", size=2)


@pytest.fixture
def saved(solution_of, tmp_path):
    path = tmp_path / "santorini_2_1.npz"
    save_solution(solution_of(SANTORINI), path)
    return path


def rewrite(path, manifest=lambda m: m, **arrays):
    """Changes the content of a file."""
    with np.load(path) as archive:
        content = dict(archive)
    content["manifest"] = np.array(json.dumps(manifest(json.loads(str(content["manifest"])))))
    np.savez(path, **{**content, **arrays})


def test_a_solution_comes_back_from_its_file(saved, solution_of):
    solved, back = solution_of(SANTORINI), load_solution(saved, SANTORINI)
    assert game_of_table(saved) == back.game == SANTORINI
    assert back.summary() == solved.summary()
    for ours, theirs in zip(jax.tree.leaves(solved.table), jax.tree.leaves(back.table), strict=True):
        assert ours.dtype == theirs.dtype
        np.testing.assert_array_equal(ours, theirs)
    np.testing.assert_array_equal(solved.plies, back.plies)
    states = jax.tree.map(lambda leaf: leaf[None], SANTORINI.from_text("00101101"))
    # By the golden table one move wins.
    probabilities, value, _ = choose(optimal_player(back), jax.random.key(0), states)
    assert np.flatnonzero(probabilities[0]).tolist() == [6]
    assert value.tolist() == [1]
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]


def test_a_solution_of_another_game_is_refused(saved):
    with pytest.raises(
        ValueError, match=r"2_1\.npz is a solution of Santorini\(size=2.*\), and not of Santorini\(size=3"
    ):
        load_solution(saved, azjax.games.make("santorini", size=3))


def test_a_file_that_is_no_solution_is_refused(tmp_path):
    path = tmp_path / "file.npz"
    with pytest.raises(ValueError, match=r"there is no file .*/file\.npz"):
        load_solution(path)
    for content in (b"", b"not an archive", b"PK\x03\x04 cut off"):
        path.write_bytes(content)
        with pytest.raises(ValueError, match=r"file\.npz is no solution file, or is damaged: ") as error:
            load_solution(path)
        assert "pickle" not in str(error.value)
    np.savez(path, scores=np.zeros(3))
    with pytest.raises(ValueError, match=r"is no azjax archive, or is damaged: .*manifest"):
        game_of_table(path)
    path.unlink()
    path.mkdir()
    with pytest.raises(ValueError, match=r"is no solution file, or is damaged: .*directory"):
        load_solution(path)


def test_a_small_file_that_unpacks_to_a_large_one_is_refused_before_it_is_unpacked(saved):
    with np.load(saved) as archive:
        content = dict(archive)
    np.savez_compressed(saved, **{**content, "scores": np.zeros(50_000_000, np.int8)})
    with pytest.raises(ValueError, match=r"it unpacks to 50,\d{3},\d{3} bytes, and at most \d+,\d{3} are read"):
        load_solution(saved)


def test_a_truncated_file_is_refused(saved):
    whole = saved.read_bytes()
    for length in (len(whole) - 1, len(whole) // 2, 10):
        saved.write_bytes(whole[:length])
        with pytest.raises(ValueError, match="is no solution file, or is damaged: "):
            load_solution(saved)


def test_no_flipped_byte_changes_a_value_unnoticed(saved, solution_of):
    whole, scores = saved.read_bytes(), solution_of(SANTORINI).table.scores
    refused = 0
    for index in np.random.default_rng(0).integers(0, len(whole), 100):
        flipped = bytearray(whole)
        flipped[index] ^= 0x10
        saved.write_bytes(flipped)
        try:
            # Some bytes of an archive, such as times, have no effect.
            np.testing.assert_array_equal(load_solution(saved, SANTORINI).table.scores, scores)
        except ValueError:
            refused += 1
    assert refused > 80


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"format": 2}, "it is of kind solution, format 2, not solution, 1"),
        ({"kind": "agent"}, "it is of kind agent, format 1, not solution, 1"),
        ({"game": "checkers"}, "is no solution file, or is damaged: unknown game 'checkers'"),
        ({"options": {"wings": 2}}, "is no solution file, or is damaged: santorini has no option 'wings'"),
        ({"sha256": "0" * 64}, "is damaged: its values are not those that were written"),
        ({"position_numbers": 1}, "was made with other rules or position numbers of santorini: solve it again"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused(saved, change, message):
    rewrite(saved, lambda manifest: manifest | change)
    with pytest.raises(ValueError, match=message):
        load_solution(saved)


def test_values_that_do_not_follow_from_the_rules_are_refused(saved, solution_of):
    """Such as those of a version with another numbering of positions."""
    table = solution_of(SANTORINI).table
    arrays = {"reached": table.reached, "scores": table.scores[::-1].copy(), "plies": solution_of(SANTORINI).plies}
    rewrite(saved, lambda manifest: manifest | {"sha256": digest(arrays)}, scores=arrays["scores"])
    with pytest.raises(ValueError, match="other rules or position numbers"):
        load_solution(saved)


def test_only_numbered_games_are_saved_and_only_to_writable_paths(nim, solution_of, tmp_path):
    with pytest.raises(ValueError, match="nim does not number its positions; its solution cannot be saved"):
        save_solution(solution_of(nim((1, 2, 3))), tmp_path / "file.npz")
    with pytest.raises(
        ValueError, match="othello has too many positions on this board for numbers of 32 bits; its sol"
    ):
        check_can_save(azjax.games.make("othello", size=6), tmp_path / "file.npz")
    with pytest.raises(ValueError, match="cannot be written: it is a folder"):
        save_solution(solution_of(SANTORINI), tmp_path)
    with pytest.raises(ValueError, match=r"there is no folder .*nowhere"):
        save_solution(solution_of(SANTORINI), tmp_path / "nowhere" / "file.npz")


def test_a_full_disk_is_one_line_of_error_and_leaves_the_old_file(saved, solution_of, monkeypatch):
    old = saved.read_bytes()
    limits, handler = resource.getrlimit(resource.RLIMIT_FSIZE), signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (512, limits[1]))
    try:
        with pytest.raises(OSError, match=r"santorini_2_1\.npz could not be written: File too large$"):
            save_solution(solution_of(SANTORINI), saved)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert saved.read_bytes() == old
    assert [path.name for path in saved.parent.iterdir()] == [saved.name]
