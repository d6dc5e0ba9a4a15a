"""What a search finds in positions whose truth is known."""

import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from studies import load_study

import azjax
from azjax.search import alphazero_policy, evaluators

SANTORINI = azjax.make("santorini", size=2)
# One of its four moves loses and the others win.
THREE_OF_FOUR_WIN = "23220010"
LOSING = "a2-b1^a2"


def visits_by_move(text, num_simulations, **options):
    state = SANTORINI.from_text(text)
    result = alphazero_policy(
        None,
        jax.random.key(0),
        jax.tree.map(lambda leaf: leaf[None], state),
        game=SANTORINI,
        evaluator=evaluators.uniform(SANTORINI),
        num_simulations=num_simulations,
        **options,
    )
    moves = np.flatnonzero(SANTORINI.legal_action_mask(state))
    return {SANTORINI.action_to_text(state, int(move)): int(result.visits[0, move]) for move in moves}, result


step, legal = jax.jit(SANTORINI.step), jax.jit(SANTORINI.legal_action_mask)


class ReferenceNode:
    """The search of the notebook that Santorini comes from: Q + c P sqrt(sum N / (1 + N)), all moves alike at first."""

    def __init__(self, state):
        self.state = state
        self.over = bool(state.terminated)
        self.moves = np.flatnonzero(legal(state)).tolist()
        self.visits, self.values = [0] * len(self.moves), [0.0] * len(self.moves)
        self.is_leaf = True

    @functools.cached_property
    def children(self):
        return [ReferenceNode(step(self.state, jnp.int32(move))) for move in self.moves]

    def value(self):
        """Of one simulation, seen by the player who moved here; each one adds a level below at the most."""
        if self.over:
            return float(self.state.rewards[1 - int(self.state.current_player)])
        if self.is_leaf:
            self.is_leaf = False
            return 0.0
        total, share = sum(self.visits), 1 / len(self.moves)
        scores = [q + share * math.sqrt(total / (n + 1)) for q, n in zip(self.values, self.visits, strict=True)]
        best = int(np.argmax(scores))
        value = self.children[best].value()
        self.visits[best] += 1
        self.values[best] += (value - self.values[best]) / self.visits[best]
        return -value


def test_the_notebooks_own_formula_gives_its_printed_shares():
    root = ReferenceNode(SANTORINI.from_text(THREE_OF_FOUR_WIN))
    for _ in range(1000):
        root.value()
    shares = sorted((round(100 * visits / sum(root.visits), 1) for visits in root.visits), reverse=True)
    assert shares == pytest.approx([33.3, 33.2, 32.3, 1.1], abs=0.31)


def test_a_losing_move_gets_less_than_a_hundredth_of_the_visits():
    visits, result = visits_by_move(THREE_OF_FOUR_WIN, 1000)
    assert sum(visits.values()) == 1000
    assert 0 < visits[LOSING] < 10
    assert result.value[0] > 0.98


def test_the_solver_proves_a_win_and_stops():
    visits, result = visits_by_move(THREE_OF_FOUR_WIN, 1000, solver=True)
    assert result.bounds[0].tolist() == [1, 1]
    assert result.value[0] == 1
    assert sum(visits.values()) < 10
    assert visits[LOSING] == 0


# Mates, in positions of random games, as the study finds them.


tactics = load_study("tactics")
CONNECT_FOUR = tactics.GAMES["Connect Four"]
MATES_IN_ONE = {}
MATES_IN_ONE["Connect Four"] = """
_______/_______/_______/OX_X__X/OO_XO_X/OOXXXOO
_______/_______/_______/__X_X_O/_OO_X_O/_XOXXXO
X______/X_XO___/X_XO__O/O_OXX_O/X_XOO_X/OXXXOOO
_______/_______/_X_____/OOO_X_X/OXO_X_X/XOOXXOO
_______/_______/_______/______O/O_____O/XX_XXXO
_______/_______/_______/_______/OXXX_X_/OOOXOOX
_______/_______/_______/______O/_X_X__O/_OXXX_O
_X___OO/_O___XX/_XO__OX/_OO_OXO/XXX_XOX/XOOOXXO
_______/_______/_______/_O_____/_O____O/_XX_XXO
_______/_X__X__/_O__OXX/OX_OOXO/XX_OOOX/XOXXXOO
O______/XO_____/OX__O__/XO_OX_X/OXXOO_X/XOOOXXX
_______/_______/_______/_____X_/_X_O_XO/XOOOXXO
_______/____O__/____O__/____XX_/__OXXO_/XOOXXOX
_______/____O__/____X__/____XO_/OX__OX_/OOO_XXX
_______/O______/O______/O_X_O_O/XXX_X_X/XOOXOOX
_______/_______/_______/______O/OO__OXO/XX_XXXO
_______/_______/____XX_/O_O_OO_/O_O_XXX/XXOXOOX
_______/___O___/___X___/___XX__/_O_XX__/XOOOXOO
_______/_______/_______/XOOOXX_/XXXOXO_/XXOOXOO
_______/_______/_______/_XO____/_XO_O__/_XXXOO_
_X____O/_O_X__O/XOXX_OX/OXOOOXO/OXXXOOX/XOXOXXO
____X__/____OX_/____XX_/____XX_/O_O_OOO/OXXOXXO
_______/___X_OX/__OX_XO/__OX_OX/OXXO_XO/OOOXOXX
_OO____/_OX___O/_XX__XX/XOOOXOX/OXOOXXX/XOOOXXO
""".strip().splitlines()
MATES_IN_ONE["Santorini 5x5"] = """
013110223003130011101000012202234
042221234013201022300111114220044
231202342414143442330034113200241
120100040011031112310002213320034
222211223312301310410200012241011
022102312213134142210104204330342
110101432010231110201001113241420
001212231101220131210101121220224
211121134013231003321010122430311
012013202120242214100321112421421
001003411102124014321311220210242
103110232110010112110103014322444
011020102021313022110003103130221
222201401110241432223101210131221
001002022310302311200230023330340
021102201112322331210014013330032
012011332301421212312222213340002
111113121100300110000000011120013
101214232004010043201110111224043
112001032101121130121121211234142
032030321120010141011001003121030
211001112001102021011031004310123
101210220111013111200021032333444
011101312101230111101022013330122
""".strip().splitlines()
MATES_IN_ONE["Brandub"] = """
7/3t3/t4t1/T3ttt/4K2/2TT1t1/7 a
2K1t2/2T2T1/5t1/t6/t2T3/1t5/1T5 d
3t1K1/4t1t/T6/7/2t1t2/3T3/5t1 a
2Tt3/t5K/4t2/1T2T2/3t1t1/1t4t/2t4 a
3tT2/1t3t1/3T3/6K/t1TT3/t2t3/4tt1 d
4T2/t4Kt/5t1/2t4/1t1t3/3t3/2Tt3 a
2t4/4T2/3t2K/1t4t/tT5/T4t1/3t3 d
1t5/2t1t2/T4Tt/4t2/tK4T/5t1/1t1T3 a
4t2/4t2/2t3K/1t2T2/1T3t1/1tt4/7 d
1T1K3/Tt4T/4ttt/7/1t5/T3t2/2t4 d
7/3ttT1/ttK1t2/7/2t4/2t3T/7 a
2t2t1/2t2t1/1t5/7/T3T1t/7/1K2t2 d
2t4/1t5/3Tt2/1t2T1t/t1T2t1/7/5K1 d
3t3/6K/4t2/t6/T1TTt2/7/4T2 d
1K1t3/3t3/3T3/t3T2/1tT2t1/3t2t/3t3 a
7/t3Kt1/2t2tT/1t5/T1T4/1t3t1/3t3 a
2t4/tt5/5t1/K3t2/1T1t3/1tT4/3t3 d
1t5/2t4/6T/4T2/t6/7/3tTK1 d
1t5/1T2t2/2T1K2/1T3tt/T6/t3t2/7 a
3t1t1/3Tt2/6K/7/4T1t/T2T2t/3t3 d
7/7/3tK2/1t4t/t3T2/T4t1/2ttT2 a
2Ttt2/2t4/3t3/K6/2Tt2T/t5t/2t2T1 d
1TT2T1/3t3/t1t2Kt/t6/7/4T1t/5t1 a
3t1T1/1t4K/1tT2T1/4t2/2tT1t1/7/1t5 d
""".strip().splitlines()
MATES_IN_TWO_OF_CONNECT_FOUR = """
_______/_______/___X___/_X_O__X/_X_X__O/OOOXXOO
_____O_/_O___X_/_X_O_XX/_OOX_OO/XOXX_XX/XOXO_OO
_______/__X____/__O____/__XO___/__OX__X/_XOO__X
_______/_______/X______/X______/O__X__O/X_OO__X
_______/_______/_______/__X_O__/XOOXXO_/XOXXOXO
____X__/____O__/_X__XOX/OO__XOX/XO_OXXO/OXOXOOX
_______/X______/O_O____/X_X_X__/OOXXOOO/XOXXXOO
___XXO_/_X_XOX_/_X_XOO_/OO_OXO_/XO_OXXO/XXOOXXO
__X_OOO/X_O_XXX/O_O_XOO/XXXOOXX/OOXXOXO/OOXOXXX
_______/_______/_______/_______/______X/_O_O_XX
_____O_/_____X_/_____X_/_____OX/__O_XOO/OXXOXXO
_______/_______/___X___/___OO_O/X__XX_X/XOOXO_O
_______/_______/_______/__O____/__O___X/__XX__O
_______/_______/__X____/_OO____/_OXX___/XXOOOX_
_______/_______/_______/_O__X__/_OXOXX_/OXOXOOX
_______/_______/_______/_______/X___OO_/O_XXOXX
_O_____/_O_____/_X_____/XX_X__O/OO_O_XX/XXOX_OO
_______/_______/_______/___X___/___XX__/XOOOXOO
_______/_______/____O__/____O__/____X__/__X_X_O
_______/____X__/____O__/__O_X_X/_OXOXOO/XOOXOXX
_______/_______/_______/_______/__O____/__XX_O_
_______/___X___/___O_X_/___X_X_/___O_O_/O_OXXXO
_______/_______/_______/_______/___X___/X_OO__X
_____X_/_____X_/X__X_X_/OOXO_O_/OOXO_X_/OXOOOXX
""".strip().splitlines()


@pytest.mark.parametrize(
    ("rows", "mating"),
    [
        # Three in a row at one end of the board; the other player has three too.
        (("XXX_OOO",), ({3}, set())),
        # Two that are open on both sides: a third makes two threats, and what lies one further only one.
        (("__OO___", "__XX___"), (set(), {1, 4})),
        # The same two, but the other player wins meanwhile.
        (("______O", "__X___O", "__XX__O"), (set(), set())),
        # Beside a stone of the other player there is one such third.
        (("__O____", "O_XX___"), (set(), {4})),
    ],
)
def test_the_exhaustive_check_finds_the_mates_known_by_hand(rows, mating):
    text = "/".join(["_______"] * (6 - len(rows)) + list(rows))
    # As many as `MATES_IN_TWO_OF_CONNECT_FOUR` has, so that one compilation serves.
    states = tactics.read(CONNECT_FOUR, [text] * 24)
    for moves, expected in zip((1, 2), mating, strict=True):
        assert set(np.flatnonzero(tactics.mating_actions(CONNECT_FOUR, states, moves)[0])) == expected


@pytest.mark.slow_except("Connect Four")
@pytest.mark.parametrize("name", MATES_IN_ONE)
def test_400_simulations_find_every_mate_in_one(name):
    game = tactics.GAMES[name]
    states = tactics.read(game, MATES_IN_ONE[name])
    assert not states.terminated.any()
    result = tactics.search(game, states, 400)
    after = jax.jit(jax.vmap(game.step))(states, result.action)
    assert after.terminated.all()
    assert (after.rewards[np.arange(24), states.current_player] == 1).all()


def test_1000_simulations_find_every_mate_in_two_of_connect_four():
    states = tactics.read(CONNECT_FOUR, MATES_IN_TWO_OF_CONNECT_FOUR)
    mating = np.asarray(tactics.mating_actions(CONNECT_FOUR, states, 2))
    assert mating.any(axis=1).all()
    assert mating.mean() < 0.25
    result = tactics.search(CONNECT_FOUR, states, 1000)
    assert mating[np.arange(24), np.asarray(result.action)].all()


@pytest.mark.slow
def test_1000_simulations_prove_every_position_of_santorini_2x2_rightly():
    states, values = tactics.unfinished(SANTORINI)
    assert len(values) == 1311
    assert set(values) == {-1, 1}
    bounds = tactics.search(SANTORINI, states, 1000, solver=True).bounds
    np.testing.assert_array_equal(bounds, np.stack([values, values], axis=1))
