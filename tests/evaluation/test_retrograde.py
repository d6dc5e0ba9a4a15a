import json
import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from ring_game import CELLS, LIVES, Ring, ring_values

import azjax
from azjax.evaluation import choose, optimal_player, retrograde, save_endings, solve_endings
from azjax.evaluation.archive import digest
from azjax.evaluation.retrograde import load_endings
from azjax.evaluation.tables import load_table
from benchmarks.rules.tafl import BrandubRules

BRANDUB = azjax.make("brandub")


def test_a_game_without_end_is_won_lost_and_drawn_as_a_plain_program_finds():
    solution, expected = solve_endings(Ring(), LIVES), ring_values()
    scores = np.full(2 * CELLS * LIVES, -128)
    for (lives, player, cell), (value, plies) in expected.items():
        scores[CELLS * (2 * (lives - 1) + player) + cell] = value * (127 - plies)
    np.testing.assert_array_equal(solution.table.scores, scores)
    signs = [value for value, _ in expected.values()]
    assert {sign: signs.count(sign) for sign in (1, 0, -1)} == {1: 22, 0: 14, -1: 16}
    assert solution.is_consistent(None)
    assert sum(part.won for part in solution.summary()) == 22
    longest = max(plies for value, plies in expected.values() if value == 1)
    assert max(part.longest_win for part in solution.summary()) == longest > 20


@pytest.fixture(scope="module")
def endings():
    """Brandub with the king and a pawn, an attacker or a defender."""
    return solve_endings(BRANDUB, 1)


@pytest.mark.slow
def test_endings_agree_with_plain_rules_one_ply_ahead():
    """Values and distances, of positions drawn from all; what is taken is looked up with fewer pieces."""
    endings = solve_endings(BRANDUB, 2)
    rules, generator = BrandubRules(), random.Random(0)
    scores = np.asarray(endings.table.scores)
    numbers = generator.sample(np.flatnonzero(scores != -128).tolist(), 30)
    positions = [rules.position(text) for text in texts_of(endings, numbers)]
    children = [[rules.step(plain, action) for action in rules.legal_actions(plain)] for plain in positions]
    texts = sorted({rules.text(child) for each in children for child in each if not child.terminal})
    later = dict(zip(texts, scores_of(endings, texts), strict=True))
    for number, plain, following in zip(numbers, positions, children, strict=True):
        after = []
        for child in following:
            score = 0 if child.terminal else later[rules.text(child)]
            after.append(126 * int(child.rewards[plain.player]) if child.terminal else np.sign(score) - score)
        assert max(after) == scores[number], rules.text(plain)


@pytest.mark.slow
def test_wins_are_forced_by_plain_rules_whatever_the_other_side_answers():
    """The table proposes the winner's moves alone; plain rules make all of the answers, and end the games in time."""
    endings, rules, generator = solve_endings(BRANDUB, 3), BrandubRules(), np.random.default_rng(0)
    scores = np.asarray(endings.table.scores)
    longest = np.flatnonzero(scores == np.min(scores[scores > 0]))
    numbers = [*generator.choice(np.flatnonzero(scores > 0), 20), *generator.choice(longest, 4)]
    for number, text in zip(numbers, texts_of(endings, numbers), strict=True):
        start = rules.position(text)
        to_move = {text: start}
        for _ in range(1, 128 - int(scores[number]), 2):
            children = [children_of(rules, plain) for plain in to_move.values()]
            # The others are won at once.
            children = [each for each in children if not any(child.rewards[start.player] == 1 for child in each)]
            answers = [child for best in best_of(endings, rules, children) for child in children_of(rules, best)]
            assert not any(child.terminal for child in answers), text
            to_move = {rules.text(child): child for child in answers}
        assert not to_move, text


def children_of(rules, plain):
    return [rules.step(plain, action) for action in rules.legal_actions(plain)]


def best_of(endings, rules, children):
    """Of the children of each position the one that the table has as the fastest win of the player who moved there."""
    unfinished = sorted({rules.text(child) for each in children for child in each if not child.terminal})
    score = dict(zip(unfinished, scores_of(endings, unfinished) if unfinished else [], strict=True))
    return [
        min((child for child in each if not child.terminal), key=lambda child: score[rules.text(child)])
        for each in children
    ]


def texts_of(solution, numbers):
    states = solution.states(np.array(numbers))
    return [BRANDUB.to_text(jax.tree.map(lambda leaf, row=row: leaf[row], states)) for row in range(len(numbers))]


def scores_of(solution, texts):
    """The scores of positions in text, as plain integers."""
    states = [BRANDUB.from_text(text) for text in texts]
    states = jax.tree.map(lambda *leaves: jnp.stack(leaves), *map(BRANDUB.without_history, states))
    known, scores = solution.best_moves().score(states)
    assert known.all()
    return np.asarray(scores, int).tolist()


def test_endings_known_by_hand(endings):
    for text, score in {
        "1K5/7/7/7/7/7/5t1 d": 126,  # the king is beside the corner
        "7/7/7/3K3/7/7/1t5 d": 127 - 3,  # to the edge, then to one of two corners
        "1K1t3/7/7/7/7/7/7 a": 126,  # taken between the attacker and the corner
        "1t5/7/1K5/7/7/7/7 a": -(127 - 4),  # whatever happens, the king goes to the edge and on to a corner
    }.items():
        assert scores_of(endings, [text]) == [score], text


def test_wins_are_won_under_the_rules_of_the_game_in_as_many_plies_as_they_say(endings):
    """By best play of both, with repetitions as the game has them."""
    player, scores = optimal_player(endings), np.asarray(endings.table.scores)
    numbers = np.random.default_rng(0).choice(np.flatnonzero(scores > 0), 32)
    states = endings.states(numbers)
    winner, plies, rewards = np.asarray(states.current_player), np.zeros(32, int), np.zeros((32, 2))
    step = jax.jit(jax.vmap(BRANDUB.step))
    while not states.terminated.all():
        plies += ~np.asarray(states.terminated)
        choice = choose(player, jax.random.key(0), states)
        assert (np.asarray(choice.value)[~np.asarray(states.terminated)] != 0).all()
        states = step(states, jnp.argmax(choice.probabilities, axis=1).astype(jnp.int32))
        rewards += np.asarray(states.rewards)
    np.testing.assert_array_equal(plies, 127 - scores[numbers])
    np.testing.assert_array_equal(rewards[np.arange(32), winner], 1)


def test_the_player_of_endings_moves_at_random_elsewhere(endings):
    states = jax.tree.map(lambda leaf: leaf[None], BRANDUB.init(jax.random.key(0)))
    probabilities, value, _ = choose(optimal_player(endings), jax.random.key(0), states)
    assert np.isnan(value).all()
    np.testing.assert_allclose(probabilities[probabilities > 0], 1 / 40, rtol=1e-6)


def test_endings_come_back_from_their_file(endings, tmp_path):
    path = tmp_path / "endings.npz"
    save_endings(endings, path)
    for back in (load_endings(path, BRANDUB), load_table(path)):
        assert (back.game, back.endings) == (BRANDUB, endings.endings)
        np.testing.assert_array_equal(back.table.scores, endings.table.scores)
    # What endings leave out plays no part.
    likewise = azjax.make("brandub", max_plies=100, repetitions=3, history=1)
    back = load_endings(path, likewise)
    assert (back.game, back.endings.game) == (likewise, likewise)
    np.testing.assert_array_equal(back.table.scores, endings.table.scores)
    other = azjax.make("brandub", capture="trapped")
    with pytest.raises(ValueError, match=r"endings\.npz has endings of .*, and not of .*capture='trapped'"):
        load_endings(path, other)

    with np.load(path) as archive:
        content = dict(archive)
    manifest = json.loads(str(content["manifest"]))
    turned = {"scores": content["scores"][::-1].copy()}
    for change, arrays, message in (
        ({}, turned, "is damaged: its values are not those that were written"),
        ({"sha256": digest(turned)}, turned, "was made with other rules or position numbers of brandub"),
        ({"pieces": 2}, {}, "was made with other rules or position numbers of brandub"),
        ({"pieces": "many"}, {}, "is damaged: pieces must be a whole number, got 'many'"),
        ({}, {"scores": np.zeros(50_000_000, np.int8)}, r"it unpacks to 50,\d{3},\d{3} bytes, and at most 66,328 are"),
        ({"kind": "song"}, {}, "is no solution and has no endings: it is of kind song"),
    ):
        np.savez_compressed(path, **{**content, "manifest": np.array(json.dumps(manifest | change)), **arrays})
        with pytest.raises(ValueError, match=message):
            load_table(path)
    with pytest.raises(ValueError, match=r"there is no file .*nowhere\.npz"):
        load_table(tmp_path / "nowhere.npz")


def test_games_without_endings_are_refused():
    with pytest.raises(ValueError, match="tictactoe has no endings that retrograde analysis could solve"):
        solve_endings(azjax.make("tictactoe"), 2)


def test_a_value_that_a_pass_cannot_explain_is_found(endings):
    scores = np.array(endings.table.scores)
    won = np.flatnonzero(scores > 0)[7]
    scores[won] = 0
    wrong = retrograde.EndingSolution(BRANDUB, retrograde.EndingTable(endings.endings, scores))
    assert endings.is_consistent(None)
    assert not wrong.is_consistent(None)


def test_a_win_that_takes_too_many_plies_is_told(monkeypatch):
    monkeypatch.setattr(retrograde, "_MOST_PLIES", 2)  # the longest win of two pieces takes five
    with pytest.raises(
        ValueError, match="king and one attacker: a win takes more than 2 plies, which the table cannot"
    ):
        solve_endings(BRANDUB, 2)
