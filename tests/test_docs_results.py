"""What the pages of docs/ say of results is what the committed files say."""

import re

import numpy as np
import pytest
from studies import page, prose, result_of


def test_what_it_says_of_tactics_is_what_the_committed_file_says():
    results = result_of("tactics")
    one, two = re.search(
        r"every mate in one by (\d+) simulations; in Connect Four every mate in two by (\d+)", prose("search")
    ).groups()
    for row in results["mates"]:
        needed = {1: int(one), 2: int(two) if row["game"] == "Connect Four" else None}[row["moves"]]
        found = dict(zip(row["simulations"], zip(*row["found"].values(), strict=True), strict=True))
        if needed is not None:
            assert set(found[needed]) == {row["positions"]}
        else:
            assert max(found[1000]) < row["positions"] / 2
    told = re.search(
        r"all (\d,\d+) positions of tic-tac-toe and all (\d,\d+) of Santorini 2x2 by (\d+,\d+)", prose("search")
    ).groups()
    counts = [int(number.replace(",", "")) for number in told]
    assert (
        [row["proven"][-1] for row in results["proofs"]]
        == [row["positions"] for row in results["proofs"]]
        == counts[:2]
    )
    assert {row["simulations"][-1] for row in results["proofs"]} == {counts[2]}
    assert {row["wrong_bounds"] for row in results["proofs"]} == {0}


def test_several_leaves_of_a_step_are_faster_and_as_strong_as_the_page_says():
    result = result_of("leaves_per_step")
    speeds = {(row["agent"], row["leaves_per_step"]): row["simulations_per_second"] for row in result["speed"]}
    for row in result["strength"]:
        rate = speeds[row["agent"], row["leaves_per_step"]]
        assert re.search(
            rf"\| {row['agent']} \| {row['leaves_per_step']} \| {rate:,} \| .*{row['score']:.2f} \(", page("search")
        )
        # The number of leaves that players take costs no strength that can be measured.
        if 100 * row["leaves_per_step"] == row["num_simulations"]:
            assert row["interval"][1] > 0.5
            assert speeds[row["agent"], 16] > 3 * speeds[row["agent"], 1]


def test_the_first_minutes_are_those_of_the_committed_file():
    rows, text = result_of("first_minutes")["rows"], prose("games")
    assert all(f"`{row['game']}`" in text for row in rows)
    assert f"in {rows[0]['games']} games against random moves" in text
    searching = {row["game"]: row["score"] for row in rows if "simulations" in row["player"]}
    assert all(score >= 0.95 for game, score in searching.items() if game not in ("ard_ri", "hnefatafl"))
    (attackers,) = [row["first"] for row in rows if row["game"] == "ard_ri" and "simulations" in row["player"]]
    assert f"the attackers draw {attackers[1]} of {sum(attackers)} games" in text
    won = {
        row["game"]: row["first"][0] + row["second"][2]
        for row in rows
        if row["player"] == "random" and row["games"] == 200
    }
    assert won["ard_ri"] == 0
    by_game = f"of Hnefatafl {won['hnefatafl']}, in Tablut and Tawlbwrdd {won['tablut']} and {won['tawlbwrdd']}."
    assert f"of 200 random games of Ard Ri they win none, {by_game}" in text


def test_what_helps_learning_is_what_the_committed_file_says():
    results = result_of("ablation")
    mean = {row["name"]: round(float(np.mean(row["mistakes"]))) for row in results["rows"]}
    text = prose("learning")
    base = mean["PUCT, 16 simulations"]
    assert f"Gumbel ends at 0 mistakes and PUCT at {mean['PUCT, 4 simulations']}" in text
    assert f"with 16 at {mean['Gumbel, 16 simulations']} and {base}; with 64 they are equal" in text
    assert mean["Gumbel, 4 simulations"] == mean["64 optimizer steps"] == 0
    assert mean["Gumbel, 64 simulations"] == mean["PUCT, 64 simulations"]
    assert f"end at 0 mistakes, 16 at {base}, 4 at {mean['4 optimizer steps']};" in text
    seconds = {row["name"]: round(row["seconds_a_seed"]) for row in results["rows"]}
    steps = [seconds[name] for name in ("64 optimizer steps", "PUCT, 16 simulations", "4 optimizer steps")]
    assert "a seed takes {}, {} and {} seconds".format(*steps) in text
    told = [mean[name] for name in ("playout cap 32 / 8", "forced playouts", "half root value", "reused tree")]
    assert re.search(r"cap ends at (\d+), .*? at (\d+), .*? at (\d+), .*? at (\d+) instead", text).groups() == tuple(
        map(str, told)
    )
    assert min(mean["proven values"], mean["EMA weights"]) >= base
    start, bare = mean["start of the game alone"], mean["the same, no symmetries"]
    assert f"from the game's start alone it is {start} mistakes instead of {base}" in text
    assert f"Without random plies, {start} mistakes with symmetries and {bare} without" in text


def test_santorini_is_learned_as_the_committed_file_says():
    results = result_of("santorini_small")
    rows = {row["player"]: row for row in results["rows"]}
    told = {
        "first improvement, moves drawn": rows["gated 1, drawn"],
        "second improvement, moves drawn": rows["gated 2, drawn"],
        "third improvement, moves drawn": rows["gated 3, drawn"],
        "preset, moves drawn": rows["preset, drawn"],
        "preset, best moves": rows["preset, network"],
        "preset, 32 simulations": rows["preset, 32 simulations"],
    }
    for name, row in told.items():
        scores = f"{row['against_random']:.4f} | {row['against_optimal']:.4f}"
        rest = f"{row['mistakes']:.0f} ({row['mistakes_share']:.2%}) | {row['seconds']:.0f}"
        assert f"| {name} | {scores} | {rest} |" in page("agents")
    assert rows["preset, network"]["mistakes"] == rows["preset, 32 simulations"]["mistakes"] == 0
    assert rows["preset, network"]["against_random"] == rows["optimal"]["against_random"] == 0.9375


def test_santorini_on_3x3_is_learned_as_the_committed_file_says():
    results = result_of("santorini_3x3")
    rows = results["rows"]
    text = prose("agents")
    minutes = int(re.search(r"After (\d+) minutes the network with 128", text)[1])
    (found,) = (row for row in rows if row["player"] == "network + 128" and round(row["seconds"] / 60) == minutes)
    shares = [f"{row[name]:.1%}" for row in (found, rows[0]) for name in ("wins_kept", "long_wins_kept", "signs_right")]
    told = "keeps {} of the wins, {} of those that take 7 plies or more, and has {} of the values' signs right"
    assert told.format(*shares[:3]) in text
    assert "without a network {}, {} and {}.".format(*shares[3:]) in text
    found = results["all_positions"]
    told = f"On all {found['positions']:,} positions the network alone makes {found['mistakes']:,.0f} mistakes"
    assert f"{told}, {found['share']:.2%}." in text


@pytest.mark.parametrize(
    ("name", "command", "cores"),
    [("brandub", "brandub", "one core"), ("santorini_5x5", "santorini --size 5 --workers 2", "one core")],
)
def test_matches_against_uct_are_those_of_the_committed_file(name, command, cores):
    results = result_of(name)
    last = [row for row in results["rows"] if row["iteration"] == results["rows"][-1]["iteration"]]
    for row in last:
        shares = (f"{row[score]:.1%}" for score in ("score", "first_score", "second_score"))
        cells = (row["player"].removesuffix(" simulations"), row["rival"], *shares, str(row["won_drawn_lost"][1]))
        assert f"| {' | '.join(cells)} |" in page("agents")
    assert f"`azjax train {command}`, {last[0]['seconds'] / 60:.0f} minutes on {cores}" in page("agents")


@pytest.mark.parametrize(
    ("name", "late_iteration", "as_attackers", "what_it_learned"),
    [
        (
            "santorini_5x5",
            1500,
            "",
            "it scores {:.1%} ([the agents](agents.md#santorini-on-5x5))",
        ),
        (
            "brandub",
            1400,
            ", 61.0% as attackers",
            "scores {:.1%} after 2,000, the last 500 with 32 simulations",
        ),
    ],
    ids=["santorini_5x5", "brandub"],
)
def test_the_match_against_the_agent_before_is_that_of_the_committed_file(
    name, late_iteration, as_attackers, what_it_learned
):
    results, text = result_of(f"{name}_before"), prose("agents")
    row, late = results["rows"][-2:]
    assert (row["rival"], late["rival"]) == ("before", f"iteration {late_iteration}")
    assert row["iteration"] == late["iteration"] == result_of(name)["rows"][-1]["iteration"]
    scores = [
        f"{each['score']:.1%} ({each['interval'][0]:.1%} to {each['interval'][1]:.1%}) against" for each in (row, late)
    ]
    told = f"With {results['settings']['num_simulations']} simulations on both sides, in {row['games']} games from"
    told = (
        f"{told} balanced openings, it scores {scores[0]} that agent{as_attackers}, and {scores[1]} its own checkpoint"
    )
    assert f"{told} after {late_iteration:,} iterations" in text
    if as_attackers:
        assert as_attackers == f", {row['first_score']:.1%} as attackers"
    assert what_it_learned.format(row["score"]) in prose("what_holds_learning_back")


def test_how_often_brandub_is_drawn_and_how_little_the_end_of_its_training_shows_are_told():
    rows = result_of("brandub_before")["rows"]
    won, drawn, lost = rows[-2]["won_drawn_lost"]
    assert f"It lost {lost} of the {won + drawn + lost} games and drew {drawn}:" in prose("agents")
    (earlier,) = (row for row in rows if row["iteration"] == 1600)
    assert f"After 1,600 it had {earlier['score']:.1%} already" in prose("what_holds_learning_back")


@pytest.mark.parametrize(("name", "iteration"), [("santorini_5x5", 600), ("brandub", 800)])
def test_how_soon_an_agent_is_as_strong_as_the_one_before_is_told(name, iteration):
    (row,) = (row for row in result_of(f"{name}_before")["rows"] if row["iteration"] == iteration)
    low, high = row["interval"]
    assert low < 0.5 < high
    told = f"({row['score']:.0%} of {row['games']} games, {low:.0%} to {high:.0%})"
    assert f"as strong after {iteration} iterations" in prose("what_holds_learning_back")
    assert told in prose("what_holds_learning_back")


def test_what_is_said_of_the_sides_and_of_the_way_there_is_in_the_committed_files():
    text, files = prose("agents"), {}
    for name in ("brandub", "santorini_5x5"):
        files[name] = result_of(name)
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
    late = [row for row in of_search["brandub"] if row["seconds"] > 25 * 60]
    assert min(row["score"] for row in late) >= 0.98
    assert "After the first 26 minutes it loses almost no points" in text
    early = of_search["santorini_5x5"][0]
    assert f"wins {early['won_drawn_lost'][0]} of 100 games with 100 simulations after the first" in text
    assert f"the first {early['seconds'] / 60:.0f} minutes" in text


@pytest.mark.parametrize("name", ["othello", "hex"])
def test_a_game_of_pgx_is_learned_as_the_committed_file_says(name):
    row, text = result_of("pgx_baselines")["rows"][name], page("games")
    (text,) = re.findall(rf"^\| {name}, 100 games against .*?(?=^[^|\n])", text, re.M | re.S | re.I)
    for match in row["matches"]:
        low, high = match["interval"]
        assert f"| {match['rival']} | {match['score']:.0%} | {low:.0%} to {high:.0%} |" in text
        assert sum(match["won_drawn_lost"]) == 100
    steps, scores = zip(*((f"{point['iteration']:,}", f"{point['score']:.0%}") for point in row["curve"]), strict=True)
    assert f"| iteration | {' | '.join(steps)} |" in text
    assert f"| 40 games against `uct:1000` | {' | '.join(scores)} |" in text
    assert f"{row['iterations']:,}" in page("games").split("All searches")[0]


def test_connect_four_is_learned_as_the_committed_file_says():
    results = result_of("connect_four")
    text = prose("agents")
    rows = [*results["rivals"], *results["rows"][-2:]]
    for row in rows:
        assert f"| {row['player']} | {row['all']:.1%} | {row['narrow']:.1%} |" in page("agents")
    assert f"every move of {results['positions']['all']:,} of them" in text
    steps, minutes = rows[-1]["iteration"], round(rows[-1]["seconds"] / 60)
    longer = f"(`--iterations {steps} --decay-updates {32 * steps} --l2 1e-5`)"
    assert f"The preset, extended to {steps:,} iterations {longer}, took {minutes} minutes" in text
    match = results["match"]
    assert (match["drawn"], match["lost"]) == (0, 0)
    wins = f"wins {match['won']} of {match['won']} games against it with {match['rollouts']:,} rollouts"
    assert f"Moving first, the network with 400 simulations {wins}" in text
    agents = list(results["sets"])
    assert "| moves that give away a win or a draw | " + " | ".join(agents) + " |" in page("agents")
    for name in results["sets"]["network"]:
        shares = [f"{results['sets'][agent][name]:.1%}" for agent in agents]
        assert f"| {name} | {' | '.join(shares)} |" in page("agents")


def test_the_win_against_best_play_is_what_the_committed_file_says():
    results, text = result_of("connect_four_best_play"), prose("agents")
    alone, *searches, most = results["rows"]
    games = results["settings"]["games"]
    assert (alone["num_simulations"], results["settings"]["agent"]) == (0, "packaged")
    (told,) = {(row["won"], row["drawn"], row["lost"], str(row["given_away"])) for row in searches}
    assert told == (194, 6, 0, "{'14': 6}")  # ply 14 is the eighth move of the first player
    few, more, many = (f"{row['num_simulations']:,}" for row in searches)
    assert f"wins {alone['won']} of {games} games without search, and {told[0]} with {few}, {more} or {many}" in text
    assert f"With {most['num_simulations']:,} it wins {most['won']} of {games}" in text


def test_seconds_of_connect_four_are_as_strong_as_the_page_says():
    *_, much, most = result_of("connect_four_seconds")["rows"]
    assert (most["num_simulations"], most["all"]) == (4 * much["num_simulations"], much["all"])
    told = re.search(r"at ([\d.]+) seconds a move \(6,400 simulations\), .* in one of (\d+) positions", prose("agents"))
    seconds, positions = map(float, told.groups())
    assert much["seconds_per_move"] == pytest.approx(seconds, abs=0.005)
    assert 1 / much["all"] == pytest.approx(positions, rel=0.02)


def test_what_helps_at_play_is_that_of_the_committed_file():
    rows = {(row["agent"], row["variant"]): row for row in result_of("at_play")["rows"]}
    kept = rows["santorini_5x5", "reused tree"]["score"]
    timed = rows["santorini_5x5", "reused tree, for a time"]["score"]
    told = f"a kept tree gains much: it scores {kept:.1%} in equal time, and {timed:.1%} in searches for a time."
    assert told in prose("search")
    assert "In Brandub it gains a little. So the terminal" in prose("search")
    assert "Proofs gain nothing in either game" in prose("search")
    for name in ("brandub", "santorini_5x5"):
        assert rows[name, "reused tree"]["interval"][0] > 0.5
        assert rows[name, "reused tree, for a time"]["interval"][0] > 0.5
        low, high = rows[name, "solver"]["interval"]
        assert low < 0.5 < high
    assert "from these openings all but the same few games are drawn" in prose("search")
    games = {tuple(row["won_drawn_lost"]) for (agent, _), row in rows.items() if agent == "connect_four"}
    assert games == {(4, 392, 4)}
