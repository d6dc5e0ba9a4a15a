"""`azjax gtp`."""

import pytest
from refusals import refused_without_a_file

from azjax.cli import main
from azjax.evaluation import RememberingPolicy


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["gtp", "random", "--game", "tictactoe", "--protocol", "opentafl"],
            "opentafl is for brandub, ard_ri, tablut, tawlbwrdd, hnefatafl by their default rules, not for tictactoe",
        ),
        (
            ["gtp", "random", "--game", "tictactoe", "--seconds", "1"],
            "seconds is for searches; random does not search",
        ),
        (
            ["gtp", "connect2", "--seconds", "1", "--policy", "gumbel"],
            "connect2: a search for a time goes without Gumbel's policy",
        ),
        (
            ["gtp", "random", "--game", "tictactoe", "--protocol", "json"],
            "json is for trained agents and uct:SIMULATIONS; random is neither",
        ),
        (
            ["gtp", "uct:100", "--game", "tictactoe", "--protocol", "json", "--num-simulations", "8"],
            "num_simulations is for trained agents; uct:100 is not one",
        ),
        (
            ["gtp", "connect2", "--seconds", "1", "--num-simulations", "64"],
            "num_simulations and seconds are two limits of a search: leave out one",
        ),
        (
            ["gtp", "connect2:8", "--seconds", "1"],
            "connect2:8 names its simulations, and seconds is another limit of a search: leave out one",
        ),
        (
            ["gtp", "connect2:easy", "--protocol", "json"],
            "json goes without a level that does not search",
        ),
        (
            ["gtp", "connect2:1s", "--protocol", "json"],
            "connect2:1s: seconds after the colon are for matches; gtp has --seconds",
        ),
        (
            ["gtp", "connect2", "--protocol", "json", "--seed", "7"],
            "json goes without --policy and --seed: its searches are AlphaZero's, without draws",
        ),
        (
            ["gtp", "connect2", "--protocol", "json", "--no-reuse-tree"],
            "--no-reuse-tree is for games; json searches each position from an empty tree",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(capsys, tmp_path, monkeypatch, arguments, message):
    assert message in refused_without_a_file(capsys, tmp_path, monkeypatch, arguments)


@pytest.mark.parametrize(("arguments", "keeps"), [([], True), (["--no-reuse-tree"], False)])
def test_a_search_keeps_its_tree_unless_it_is_told_not_to(arguments, keeps, monkeypatch):
    served = []
    monkeypatch.setattr("azjax.commands.gtp.serve", lambda engine, lines, output: served.append(engine))
    main(["gtp", "connect2", *arguments])
    (engine,) = served
    assert isinstance(engine._ongoing.player.policy, RememberingPolicy) == keeps


def test_a_player_that_does_not_search_has_no_tree_to_keep(monkeypatch):
    served = []
    monkeypatch.setattr("azjax.commands.gtp.serve", lambda engine, lines, output: served.append(engine))
    main(["gtp", "random", "--game", "connect2"])
    assert served[0]._ongoing.player.name == "random"
