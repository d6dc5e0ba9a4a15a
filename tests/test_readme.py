"""The README's code runs as printed."""

import json
import re
from pathlib import Path

import jax
import numpy as np
import pytest

import azjax
from azjax.evaluation import solve
from azjax.games import game as game_module
from azjax.packaged import packaged
from azjax.training import Config, init, make_iteration

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()
BLOCKS = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)


@pytest.fixture
def nim(monkeypatch):
    """The example game, registered for one test."""
    (example,) = [block for block in BLOCKS if "@register" in block]
    azjax.available()
    monkeypatch.setattr(game_module, "_FACTORIES", dict(game_module._FACTORIES))
    exec(compile(example, "README.md", "exec"), {"__name__": "nim_example"})
    return azjax.make("nim", heap=13)


def test_the_search_from_python_runs_as_printed(capsys):
    example, seeing = [block for block in BLOCKS if "_policy(" in block]
    names = {"__name__": "search_example"}
    exec(compile(example, "README.md", "exec"), names)
    visits = capsys.readouterr().out.split("]")[0].strip("[ ").split()
    assert sum(map(int, visits)) == 100
    exec(compile(seeing, "README.md", "exec"), names)
    assert "X___O____" in capsys.readouterr().out


def test_the_example_game_keeps_every_law(nim):
    azjax.games.check_game(nim)


def test_the_example_game_is_lost_at_multiples_of_four(nim):
    """Who leaves a multiple of four answers every move with its complement to four."""
    solution = solve(nim)
    running = ~solution.terminated
    lost = solution.states.stones[running] % 4 == 0
    np.testing.assert_array_equal(solution.values[running], np.where(lost, -1, 1))


def test_the_example_game_can_be_trained(nim):
    config = Config(
        network="mlp",
        width=8,
        depth=1,
        num_simulations=4,
        num_games=8,
        steps_per_iteration=13,  # a whole game
        replay_size=256,
        batch_size=8,
        updates_per_iteration=1,
    )
    state = jax.jit(lambda: init(nim, config, 0, config.hyper))()
    state, metrics = jax.jit(make_iteration(nim, config))(state, config.hyper)
    assert float(metrics["games"]) >= 8
    assert np.isfinite(float(metrics["loss"]))


def test_the_speeds_are_those_of_the_committed_file():
    rows = json.loads((ROOT / "experiments" / "results" / "search.json").read_text())["rows"]
    for row in rows:
        rates = row["simulations_per_second"]
        sizes = [f"{row[field]:,}" for field in ("actions", "batch", "num_simulations")]
        own = [f"{rates[side]:,}" if side in rates else "" for side in ("azjax", "azjax on all devices")]
        ratios = [f"{row[name]:,.1f}" if name in row else "" for name in ("ratio", "ratio_on_all_devices")]
        rival = f"{row['rival']} {rates[row['rival']]:,}"
        assert "| " + " | ".join([row["game"], *sizes, f"`{row['evaluator']}`", *own, rival, *ratios]) + " |" in README
    deep = {(row["game"], row["batch"]): round(row["ratio"]) for row in rows if row["evaluator"] == "peaked"}
    told = re.findall(r"(\d+) times the\s+simulations per second of mctx at 9 actions and ([\d,]+) times", README)
    assert told == [(f"{deep['tictactoe', 1024]:,}", f"{deep['brandub', 128]:,}")]


def test_the_ratios_on_a_second_machine_are_those_of_the_committed_file():
    rows = json.loads((ROOT / "experiments" / "results" / "search_second_machine.json").read_text())["rows"]
    for row in rows:
        sizes = [f"{row[field]:,}" for field in ("batch", "num_simulations")]
        ratios = [f"{row[name]:,.1f}" if name in row else "" for name in ("ratio", "ratio_on_all_devices")]
        cells = [row["game"], *sizes, f"`{row['evaluator']}`, beside {row['rival']}", *ratios]
        assert "| " + " | ".join(cells) + " |" in README


def test_the_speeds_of_the_games_are_those_of_the_committed_file():
    results = json.loads((ROOT / "experiments" / "results" / "games.json").read_text())
    for game in results["settings"]["games"]:
        # The table of searches has longer rows.
        (line,) = re.findall(rf"^\| {re.escape(game)} ((?:\|[^|\n]*){{6}})\|$", README, re.M)
        rows = [row for row in results["rows"] if row["game"] == game]
        told = [int(number) for number in re.findall(r"\d[\d,]*(?= [(|])", line.replace(",", ""))]
        own = [row["steps_per_second"]["azjax"] for row in rows]
        others = [rate for side, rate in rows[-1]["steps_per_second"].items() if side != "azjax"]
        assert told == own + others, game


def test_the_files_that_it_links_to_are_there():
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link


def test_perfect_play_with_every_seed_is_what_the_committed_file_says():
    results = json.loads((ROOT / "experiments" / "results" / "perfect_play.json").read_text())
    assert {(row["game"], row["seed"]) for row in results["rows"]} == {
        (game, seed) for game in ("connect2", "tictactoe", "santorini") for seed in range(3)
    }
    assert {row["network"]["positions"] for row in results["rows"]} == {23, 4520, 1311}
    for row in results["rows"]:
        assert row["network"]["mistakes"] == row["network_and_64_simulations"]["mistakes"] == 0


def test_every_packaged_agent_is_told_with_its_card():
    named = re.findall(r"^\| \[`(\w+)`\]\(azjax/packaged/(\w+)\.md\) \|", README, re.M)
    assert sorted(named) == [(name, name) for name in packaged()]


def test_what_it_says_of_tactics_is_what_the_committed_file_says():
    results = json.loads((ROOT / "experiments" / "results" / "tactics.json").read_text())
    one, two = re.search(
        r"every mate in one by (\d+) simulations; in Connect Four every mate in two by (\d+)", README
    ).groups()
    for row in results["mates"]:
        needed = {1: int(one), 2: int(two) if row["game"] == "Connect Four" else None}[row["moves"]]
        found = dict(zip(row["simulations"], zip(*row["found"].values(), strict=True), strict=True))
        if needed is not None:
            assert set(found[needed]) == {row["positions"]}
        else:
            assert max(found[1000]) < row["positions"] / 2
    told = re.search(
        r"all (\d,\d+) positions of tic-tac-toe and all (\d,\d+) of Santorini 2x2 by (\d+,\d+)", README
    ).groups()
    counts = [int(number.replace(",", "")) for number in told]
    assert (
        [row["proven"][-1] for row in results["proofs"]]
        == [row["positions"] for row in results["proofs"]]
        == counts[:2]
    )
    assert {row["simulations"][-1] for row in results["proofs"]} == {counts[2]}
    assert {row["wrong_bounds"] for row in results["proofs"]} == {0}


def test_santorini_is_learned_as_the_committed_file_says():
    results = json.loads((ROOT / "experiments" / "results" / "santorini_small.json").read_text())
    rows = {row["player"]: row for row in results["rows"]}
    told = {
        "first improvement, moves drawn": rows["gated 1, drawn"],
        "second improvement, moves drawn": rows["gated 2, drawn"],
        "preset, moves drawn": rows["preset, drawn"],
        "preset, best moves": rows["preset, network"],
        "preset, 32 simulations": rows["preset, 32 simulations"],
    }
    for name, row in told.items():
        scores = f"{row['against_random']:.4f} | {row['against_optimal']:.4f}"
        rest = f"{row['mistakes']:.0f} ({row['mistakes_share']:.2%}) | {row['seconds']:.0f}"
        assert f"| {name} | {scores} | {rest} |" in README
    assert rows["preset, network"]["mistakes"] == rows["preset, 32 simulations"]["mistakes"] == 0
    assert rows["preset, network"]["against_random"] == rows["optimal"]["against_random"] == 0.9375


def test_santorini_on_3x3_is_learned_as_the_committed_file_says():
    results = json.loads((ROOT / "experiments" / "results" / "santorini_3x3.json").read_text())
    rows = results["rows"]
    text = " ".join(README.split())
    minutes = int(re.search(r"After (\d+) minutes the network with 128", text)[1])
    (found,) = (row for row in rows if row["player"] == "network + 128" and round(row["seconds"] / 60) == minutes)
    shares = [f"{row[name]:.1%}" for row in (found, rows[0]) for name in ("wins_kept", "long_wins_kept", "signs_right")]
    told = "keeps {} of the wins, {} of those that take 7 plies or more, and has {} of the values' signs right"
    assert told.format(*shares[:3]) in text
    assert "without a network {}, {} and {}.".format(*shares[3:]) in text
    found = results["all_positions"]
    told = f"On all {found['positions']:,} positions the network alone makes {found['mistakes']:,.0f} mistakes"
    assert f"{told}, {found['share']:.2%}." in text
    assert f"{found['share']:.2%} mistakes on all {found['positions']:,} positions, without search" in text


@pytest.mark.parametrize(
    ("name", "command"), [("brandub", "brandub"), ("santorini_5x5", "santorini --size 5 --workers 2")]
)
def test_matches_against_uct_are_those_of_the_committed_file(name, command):
    results = json.loads((ROOT / "experiments" / "results" / f"{name}.json").read_text())
    last = [row for row in results["rows"] if row["iteration"] == results["rows"][-1]["iteration"]]
    for row in last:
        shares = (f"{row[score]:.1%}" for score in ("score", "first_score", "second_score"))
        cells = (row["player"].removesuffix(" simulations"), row["rival"], *shares, str(row["won_drawn_lost"][1]))
        assert f"| {' | '.join(cells)} |" in README
    assert f"`azjax train {command}`, {last[0]['seconds'] / 60:.0f} minutes on 2 cores" in README
    (hundred,) = [row for row in last if (row["player"], row["rival"]) == ("network + 100 simulations", "uct:1000")]
    told = f"{hundred['score']:.1%} against UCT with 1,000 rollouts, with 100 simulations"
    assert f"| [`{name}`](azjax/packaged/{name}.md) | {told} |" in README


def test_what_is_said_of_the_sides_and_of_the_way_there_is_in_the_committed_files():
    text, files = " ".join(README.split()), {}
    for name in ("brandub", "santorini_5x5"):
        files[name] = json.loads((ROOT / "experiments" / "results" / f"{name}.json").read_text())
    attackers, _, defenders = files["brandub"]["rival_against_itself"]["first_won_drawn_lost"]
    assert f"Of 100 games of that UCT with itself the defenders win {defenders} and the attackers {attackers}" in text
    first = files["santorini_5x5"]["rival_against_itself"]["first_score"]
    assert f"scores {first:.1%} against itself moving first" in text
    of_search = {
        name: [
            row for row in each["rows"] if row["player"].endswith("+ 100 simulations") and row["rival"] == "uct:1000"
        ]
        for name, each in files.items()
    }
    late = [row for row in of_search["brandub"] if row["seconds"] > 38 * 60]
    assert min(row["score"] for row in late) >= 0.98
    assert "after 38 of which it loses hardly a point any more" in text
    early = of_search["santorini_5x5"][0]
    assert f"wins {early['won_drawn_lost'][0]} of 100 games with 100 simulations after the first" in text
    assert f"the first {early['seconds'] / 60:.0f} minutes" in text


def test_connect_four_is_learned_as_the_committed_file_says():
    results = json.loads((ROOT / "experiments" / "results" / "connect_four.json").read_text())
    text = " ".join(README.split())
    rows = [*results["rivals"], *results["rows"][-2:]]
    for row in rows:
        assert f"| {row['player']} | {row['all']:.1%} | {row['narrow']:.1%} |" in README
    assert f"every move of {results['positions']['all']:,} of them" in text
    assert f"the run of `azjax train connect_four`, {rows[-1]['seconds'] / 60:.0f} minutes".lower() in text.lower()
    match = results["match"]
    assert (match["drawn"], match["lost"]) == (0, 0)
    assert f"wins {match['won']} of {match['won']} games moving first, at {match['rollouts']:,} rollouts" in text
    agents = list(results["sets"])
    assert "| moves that give away a win or a draw | " + " | ".join(agents) + " |" in README
    for name in results["sets"]["network"]:
        assert f"| {name} | " + " | ".join(f"{results['sets'][agent][name]:.1%}" for agent in agents) + " |" in README
    with_search, alone = rows[-1], rows[-2]
    told = f"{with_search['all']:.1%} mistakes with 400 simulations, {alone['all']:.1%} without"
    assert told in README


def test_several_leaves_of_a_step_cost_and_bring_what_the_committed_file_says():
    rows = json.loads((ROOT / "experiments" / "results" / "leaves_per_step.json").read_text())["rows"]
    by_width = {row["leaves_per_step"]: row for row in rows}
    eight, one, points = re.search(
        r"leaves a step take (\d+) milliseconds .*? one leaf (\d+), at\s+(0\.\d\d) points", README, re.S
    ).groups()
    assert [int(eight), int(one)] == [round(by_width[width]["network_milliseconds"]) for width in (8, 1)]
    assert float(points) == round(by_width[8]["score"], 2)
    assert all(row["uniform_milliseconds"] > by_width[1]["uniform_milliseconds"] for row in rows[1:])


def test_what_helps_learning_is_what_the_committed_file_says():
    results = json.loads((ROOT / "experiments" / "results" / "ablation.json").read_text())
    mean = {row["name"]: round(float(np.mean(row["mistakes"]))) for row in results["rows"]}
    text = " ".join(README.split())
    base = mean["PUCT, 16 simulations"]
    assert f"PUCT with as many at {mean['PUCT, 4 simulations']} of them" in text
    assert f"with 16 it is {mean['Gumbel, 16 simulations']} and {base}, with 64 no difference" in text
    assert mean["Gumbel, 4 simulations"] == mean["64 optimiser steps"] == 0
    assert mean["Gumbel, 64 simulations"] == mean["PUCT, 64 simulations"]
    assert f"end at 0 mistakes, 16 at {base}, 4 at {mean['4 optimiser steps']};" in text
    seconds = {row["name"]: round(row["seconds_a_seed"]) for row in results["rows"]}
    steps = [seconds[name] for name in ("64 optimiser steps", "PUCT, 16 simulations", "4 optimiser steps")]
    assert "a seed takes {}, {} and {} seconds".format(*steps) in text
    told = [mean[name] for name in ("playout cap 32 / 8", "forced playouts", "half root value", "reused tree")]
    assert re.search(r"cap ends at (\d+), .*? at (\d+), .*? at (\d+), .*? at (\d+) instead", text).groups() == tuple(
        map(str, told)
    )
    assert min(mean["proven values"], mean["averaged weights"]) >= base
    start, bare = mean["start of the game alone"], mean["the same, no symmetries"]
    assert f"from the game's start alone it is {start} mistakes instead of {base}" in text
    assert f"without these it is {bare} mistakes without symmetries" in text


def test_the_speed_of_the_whole_loop_is_that_of_the_committed_file():
    results = json.loads((ROOT / "experiments" / "results" / "self_play_speed.json").read_text())
    for row in results["rows"]:
        rates = row["positions_per_second"]
        cells = [f"{row['network']} {row['depth']} x {row['width']}", *(f"{rate:,.0f}" for rate in rates.values())]
        cells += [f"{row['ratio']:.2f}", f"{row['network_share']['azjax']:.2f}"]
        assert "| " + " | ".join(cells) + " |" in README
