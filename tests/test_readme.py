"""What the README tells is what the committed files say, and its code runs as printed."""

import re
from pathlib import Path

import tables_of_speed  # of docs/
from studies import result_of

from azjax.packaged import packaged, strength_of

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_search_from_python_runs_as_printed(capsys):
    (example,) = re.findall(r"^```python\n(.*?)^```", README, re.M | re.S)
    exec(compile(example, "README.md", "exec"), {"__name__": "search_example"})
    visits = capsys.readouterr().out.split("]")[0].strip("[ ").split()
    assert sum(map(int, visits)) == 100
    assert example in (ROOT / "docs" / "getting_started.md").read_text()


def test_the_speeds_are_those_of_the_committed_file():
    rows = result_of("search")["rows"]
    every = [f"| {' | '.join(tables_of_speed.search_cells(row))} |" for row in rows]
    told = [line for line in README.splitlines() if len(line.split("|")) == 12]
    assert [line for line in told[2:] if line not in every] == []
    assert len(told) == 2 + 6
    games = [line.split(" | ")[0] for line in told[2:5]]
    shallow = [f"{row['ratio']:.1f}" for row in rows if row["evaluator"] == "uniform" and f"| {row['game']}" in games]
    assert "azjax is {}, {} and {} times as fast as mctx".format(*shallow[:3]) in " ".join(README.split())
    deep = {(row["game"], row["batch"]): round(row["ratio"]) for row in rows if row["evaluator"] == "peaked"}
    told = re.findall(r"(\d+) times the\s+simulations per second of mctx at 9 actions and ([\d,]+) times", README)
    assert told == [(f"{deep['tictactoe', 1024]:,}", f"{deep['brandub', 128]:,}")]


def test_the_files_that_it_links_to_are_there():
    for link in re.findall(r"\]\(([^)#:]+)\)", README):
        assert (ROOT / link).exists(), link


def test_perfect_play_with_every_seed_is_what_the_committed_file_says():
    results = result_of("perfect_play")
    assert {(row["game"], row["seed"]) for row in results["rows"]} == {
        (game, seed) for game in ("connect2", "tictactoe", "santorini") for seed in range(3)
    }
    assert {row["network"]["positions"] for row in results["rows"]} == {23, 4520, 1311}
    for row in results["rows"]:
        assert row["network"]["mistakes"] == row["network_and_64_simulations"]["mistakes"] == 0


def test_every_packaged_agent_is_told_with_its_card():
    named = re.findall(r"^\| \[`(\w+)`\]\(azjax/packaged/(\w+)\.md\) \|", README, re.M)
    assert sorted(named) == [(name, name) for name in packaged()]


def test_their_strengths_are_those_of_the_cards_and_of_the_committed_files():
    strengths = dict(re.findall(r"^\| \[`(\w+)`\]\([^)]*\) \| (.*) \|$", README, re.M))
    assert {name: strength_of(name).lower() for name in packaged()} == {
        name: f"{strength}.".lower() for name, strength in strengths.items()
    }
    for name in ("brandub", "santorini_5x5"):
        rows = result_of(name)["rows"]
        (hundred,) = [
            row
            for row in rows
            if (row["iteration"], row["player"], row["rival"])
            == (rows[-1]["iteration"], "network + 100 simulations", "uct:1000")
        ]
        assert (
            strengths[name] == f"with 100 simulations it scores {hundred['score']:.1%} against UCT with 1,000 rollouts"
        )
    alone, with_search = result_of("connect_four")["rows"][-2:]
    solved = result_of("connect_four")["positions"]["all"]
    told = f"{with_search['all']:.1%} mistakes with 400 simulations, {alone['all']:.1%} without"
    assert strengths["connect_four"] == f"{told}, on {solved:,} solved positions"
    found = result_of("santorini_3x3")["all_positions"]
    told = f"{found['share']:.2%} mistakes on all {found['positions']:,} positions, without search"
    assert strengths["santorini_3x3"] == told
