"""Agents judged by solved games and endings, first minutes of training, and proofs."""

import json

import pytest
from studies import load_study

from azjax.core.errors import InputError
from azjax.evaluation import save_endings, save_solution, solve, solve_endings
from azjax.games.registry import make


@pytest.mark.slow
def test_the_agent_is_judged_by_endings_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("brandub_endings")
    monkeypatch.setattr(study, "GAMES", 16)
    monkeypatch.setattr(study, "BATCH", 16)
    monkeypatch.setattr(study, "SIMULATIONS", (0, 4))
    monkeypatch.setattr(study, "DOCS", tmp_path)
    save_endings(solve_endings(make("brandub"), 2), tmp_path / "endings.npz")
    study.main(table=tmp_path / "endings.npz", games=16, positions=32, output=tmp_path / "results.json")
    results = json.loads((tmp_path / "results.json").read_text())
    assert [part["won"] for part in results["endings"][:2]] == [72, 1936]
    for players in results["agent"].values():
        assert list(players) == ["network", "4 simulations"]
    drawn = results["agent"]["even_draws"]["network"]
    sides = [drawn["by_side"][f"won, {side} to move"]["positions"] for side in ("attackers", "defenders")]
    # With two pawns nothing is drawn, and a position in which some moves lose value is won.
    assert sides == [16, 16]
    assert drawn["kept"] <= drawn["positions"] == 32


@pytest.mark.slow
def test_small_boards_are_learned_and_judged_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("small_boards")
    monkeypatch.setattr(study, "BOARDS", {"hex_3x3": ("hex", {"size": 3})})
    paths = {"runs": tmp_path, "output": tmp_path / "results.json", "plot": tmp_path / "plot.png"}
    for _ in range(2):  # the second time nothing is left to judge
        study.main(seeds=1, iterations=1, **paths)
        (row,) = json.loads(paths["output"].read_text())["rows"]
        assert (row["board"], row["seed"], row["iteration"]) == ("hex_3x3", 0, 1)
        assert 0 < row["mistakes"] < row["positions"] < 5_514
    assert paths["plot"].stat().st_size > 10_000


@pytest.mark.slow
def test_the_first_minutes_are_judged_at_tiny_sizes(tmp_path, monkeypatch):
    study = load_study("first_minutes")
    monkeypatch.setattr(study, "GAMES", {"chomp": ("chomp", {})})
    monkeypatch.setattr(study, "SHARE", 1 / 400)
    paths = {"runs": tmp_path, "output": tmp_path / "results.json"}
    for _ in range(2):  # the second time nothing is left to play
        study.main(num_simulations=4, games=4, **paths)
    rows = json.loads(paths["output"].read_text())["rows"]
    assert [row["player"] for row in rows] == ["network", "network + 4 simulations", "random"]
    assert [row.get("iterations") for row in rows] == [1, 1, None]
    for row in rows:
        assert sum(row["total"]) == row["games"] == 4
        assert [sum(row["first"]), sum(row["second"])] == [2, 2]


def test_mates_are_proven_and_a_start_keeps_its_bounds_at_the_limit(tmp_path, monkeypatch):
    study, output, mates = load_study("proofs"), tmp_path / "results.json", tmp_path / "mates.json"
    starts = {"tictactoe": ("tictactoe", {}), "hex_4x4": ("hex", {"size": 4})}
    monkeypatch.setattr(study, "STARTS", {"tictactoe": starts["tictactoe"]})
    texts = ["_______/_______/_______/_______/___O___/_O_XX__"]
    mates.write_text(json.dumps({"mates": [{"game": "Connect Four", "moves": 2, "texts": texts}]}))
    study.main(1000, 20_000, mates, output)
    results = json.loads(output.read_text())
    (row,) = results["mates"]
    assert (row["mates"], row["proven"], row["refuted"]) == (1, 1, 0)
    assert 7 < row["positions"]["50%"] <= 1000
    (solved,) = results["starts"]
    monkeypatch.setattr(study, "STARTS", {"hex_4x4": starts["hex_4x4"]})
    mates.write_text(json.dumps({"mates": []}))
    study.main(1000, 50, mates, tmp_path / "few.json")
    (given_up,) = json.loads((tmp_path / "few.json").read_text())["starts"]
    assert (solved["board"], solved["value"], solved["at_least"], solved["at_most"]) == ("tictactoe", 0, 0, 0)
    assert len(solved["best_move"]) == 2
    assert (given_up["value"], given_up["best_move"], given_up["at_least"], given_up["at_most"]) == (None, None, -1, 1)
    assert 50 - 16 < given_up["positions"] <= 50


@pytest.mark.parametrize("name", ["solved", "table_files"])
def test_a_board_that_is_not_known_is_refused(name, tmp_path):
    with pytest.raises(InputError, match=r"^unknown board go; available: .*hex_4x4"):
        load_study(name).main("go", tmp_path / "results.json")


def test_the_file_of_a_solved_board_is_measured(tmp_path, monkeypatch):
    study, output = load_study("table_files"), tmp_path / "results.json"
    monkeypatch.setattr(study, "BOARDS", ("hex_3x3",))
    monkeypatch.setattr(study, "BATCH", 8)
    save_solution(solve(make("hex", size=3)), tmp_path / "hex_3x3.npz")
    study.main("hex_3x3", output, tmp_path)
    row = json.loads(output.read_text())["rows"]["hex_3x3"]
    # Of 5,514 positions 994 are the end.
    assert row["unfinished"] == 4520
    # 3^9 numbers take two bits each; scores and plies three or four.
    assert row["mapped_megabytes"] == round((row["unfinished"] * 8 + 2 * 3**9) / 8e6, 1)
    assert set(row["probe_microseconds"]) == {"1", "8"}
