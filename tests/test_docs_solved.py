"""What docs/solved.md says is what the committed files say."""

from studies import prose, result_of


def test_the_solved_boards_are_those_of_the_committed_file():
    rows, text = result_of("solved")["rows"], prose("solved")
    assert "| Connect Four 5x5 | 69,763,700 * | draw * | 1, 2, 3, 4, 5 |" in text
    assert "| Hex 4x4 | 9,386,235 | first player wins * | d1, c2, b3, a4 |" in text
    for name, row in rows.items():
        assert row["won"] + row["drawn"] + row["lost"] + row["terminal"] == row["reachable"]
        assert name.startswith("chomp") or row["second_method"]["positions"] == 100
    longest = {name: row.get("longest_win") for name, row in rows.items()}
    assert f"has a win of {longest['connect_four_5x5']} plies here" in text
    assert f"in the corner it takes {longest['connect_four_6x4']} plies" in text
    assert f"longest win is this one of Black's, {longest['breakthrough_3x6']} plies" in text
    assert f"than that from the start, {longest['breakthrough_4x5']} plies" in text
    assert rows["breakthrough_4x5"]["longest_win_in"] == "bbbb/..../..../..../wwww w"
    assert f"Here Blue needs {longest['hex_4x4']} plies" in text


def test_the_files_of_solved_boards_are_small_and_quick_as_the_page_says():
    rows = result_of("table_files")["rows"].values()
    assert all(row["megabytes"] * 4 < row["mapped_megabytes"] for row in rows)
    assert all(row["unpacking_seconds"] * 3 < row["reading_seconds"] for row in rows)
    many, one = ([row["probe_microseconds"][size] for row in rows] for size in ("4096", "1"))
    told = f"takes {min(many)} to {max(many)} microseconds in batches of 4,096 positions, and {min(one):.0f} to"
    assert f"{told} {max(one):.0f} for one position alone" in prose("solved")


def test_the_solved_endings_are_those_of_the_committed_file():
    results, text = result_of("brandub_endings"), prose("solved")
    for part in results["endings"]:
        assert part["won"] + part["drawn"] + part["lost"] == part["positions"]
        assert f"| {part['positions']:,} | {part['won']:,} | {part['drawn']:,} | {part['lost']:,} |" in text
    # 44 squares and the castle for the king, and 44 for the attacker.
    assert results["endings"][0]["positions"] == 44 * 43 + 44
    longest = {(part["name"], part["player"]): part["longest_win"] for part in results["endings"]}
    plies = {longest["king and 5 attackers", player] for player in range(2)}
    assert len(plies) == 1
    assert f"can hold out for {plies.pop()} plies against five attackers" in text
    settings = results["settings"]
    own = results["agent"]["own_games"]["network"]["positions"]
    told = f"the {own} that {settings['games']:,} games of its network reached"
    assert f"{told}, and {settings['positions']:,} sampled uniformly by their numbers" in text
    evenly = results["agent"]["even_draws"]
    won = evenly["network"]["by_side"]["won, attackers to move"]
    assert 0.3 < 1 - won["kept"] / won["positions"] < 0.37  # a third
    assert 0.5 < evenly["network"]["right_signs"] / evenly["network"]["decided"] < 0.6
    assert evenly["100 simulations"]["kept"] > 0.99 * evenly["100 simulations"]["positions"]
    many = evenly["1000 simulations"]
    assert f"still give away, {many['positions'] - many['kept']} positions of 10,000," in text
    assert many["by_side"]["won, defenders to move"]["kept"] == many["by_side"]["won, defenders to move"]["positions"]
    assert many["by_distance"]["won in 1"]["kept"] == many["by_distance"]["won in 1"]["positions"]
    own_games = results["agent"]["own_games"]["1000 simulations"]
    assert own_games["kept"] == own_games["positions"]


def test_proofs_are_those_of_the_committed_file():
    results, text = result_of("proofs"), prose("solved")
    for row in results["mates"]:
        assert (row["proven"], row["refuted"]) == (row["mates"], 0)
    (start,) = results["starts"]
    assert (start["board"], start["at_least"], start["at_most"]) == ("santorini_4x4", -1, 1)
    millions, minutes = round(start["positions"] / 1e6), round(start["seconds"] / 60)
    assert f"disproven to be a win by {millions} million positions, which took {minutes} minutes" in text
