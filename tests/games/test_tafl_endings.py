import functools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import azjax

BRANDUB = azjax.make("brandub")
ENDINGS = BRANDUB.endings(2)
NUMBERS = jnp.arange(ENDINGS.num_position_numbers, dtype=jnp.uint32)


@pytest.fixture(scope="module")
def states():
    """The states of all numbers."""
    return jax.jit(jax.vmap(ENDINGS.from_position_number))(NUMBERS)


def test_every_unfinished_position_has_the_number_that_it_is_made_from(states):
    unfinished = ~np.asarray(states.terminated)
    again = jax.jit(jax.vmap(ENDINGS.position_number))(states)
    np.testing.assert_array_equal(np.asarray(again)[unfinished], np.asarray(NUMBERS)[unfinished])
    np.testing.assert_array_equal(states.current_player, _part_of_each(lambda part: part % 2))


def _part_of_each(value):
    sizes = [part.stop - part.first for part in ENDINGS.parts]
    return np.repeat([value(part) for part in range(len(sizes))], sizes)


def test_the_numbers_stand_for_every_placement(states):
    """On 7x7 a pawn has 44 squares, and the king these and the castle; two pieces do not share one."""
    unfinished = ~np.asarray(states.terminated)
    placements = {
        "king and one attacker": 44 * 43 + 44,
        "king and 2 attackers": 44 * math.comb(43, 2) + math.comb(44, 2),
        "king, one defender and one attacker": 44 * 43 * 42 + 44 * 43,
    }
    for part in ENDINGS.parts:
        own = unfinished[part.first : part.stop].reshape(len(part.images), -1).sum(axis=1)
        # Beside each corner, two ways to put the king and the defender on both squares that an attacker could go to.
        stuck = 8 * 2 if part.group == 2 and part.player == 0 else 0
        assert own @ np.array(part.images) == placements[part.name] - stuck


def test_no_number_is_that_of_more_pieces_or_of_a_finished_game():
    none = ENDINGS.num_position_numbers
    for text in (
        "3t3/3t3/3T3/ttTKTtt/3T3/3t3/3t3 a",  # the start
        "7/7/7/1t1K1tt/7/7/7 a",
        "7/7/3T3/3K3/3T3/7/1t5 d",
        "K6/7/7/7/3t3/7/7 a",
        "7/7/7/7/3t3/7/7 d",
    ):
        assert int(ENDINGS.position_number(BRANDUB.from_text(text))) == none, text


def test_a_number_is_written_by_hand():
    # The squares that the king's stand for: b7 c7 d7 b6 c6 d6 c5 d5 d4. Pawns count theirs from b7 in rows.
    assert ENDINGS.parts[0].images == (8, 8, 4, 4, 8, 4, 4, 4, 1)
    assert int(ENDINGS.position_number(BRANDUB.from_text("1Kt4/7/7/7/7/7/7 a"))) == 1
    assert int(ENDINGS.position_number(BRANDUB.from_text("7/7/7/3K3/7/7/5t1 a"))) == 8 * 44 + 43
    assert int(ENDINGS.position_number(BRANDUB.from_text("1Kt4/7/7/7/7/7/7 d"))) == 9 * 44 + 1
    first = ENDINGS.parts[2].first
    assert int(ENDINGS.position_number(BRANDUB.from_text("1Ktt3/7/7/7/7/7/7 a"))) == first + 1 + math.comb(2, 2)
    first = ENDINGS.parts[4].first
    assert int(ENDINGS.position_number(BRANDUB.from_text("1KtT3/7/7/7/7/7/7 a"))) == first + 2 * 44 + 1


def test_images_have_the_image_numbers_and_off_the_axes_one_number():
    text = "7/2K1t2/7/7/1t5/7/7 d"
    images, _ = BRANDUB.symmetries(BRANDUB.without_history(BRANDUB.from_text(text)))
    numbers = jax.vmap(ENDINGS.position_number)(images)
    assert len(set(numbers.tolist())) == 1
    on_an_axis = BRANDUB.symmetries(BRANDUB.without_history(BRANDUB.from_text("7/1K2t2/7/7/2t4/7/7 d")))[0]
    numbers = set(jax.vmap(ENDINGS.position_number)(on_an_axis).tolist())
    assert len(numbers) == 2
    for number in numbers:
        assert set(ENDINGS.image_numbers(jnp.uint32(number)).tolist()) == numbers


@pytest.mark.slow
@pytest.mark.parametrize(("name", "pieces"), [("brandub", 2), ("tablut", 1)])
def test_each_position_is_a_predecessor_of_those_that_its_quiet_moves_lead_to(name, pieces):
    """Or an image of it is."""
    endings = azjax.make(name).endings(pieces)
    generator = np.random.default_rng(0)
    for part in endings.parts:
        numbers = jnp.asarray(generator.integers(part.first, part.stop, 64), jnp.uint32)
        following, images, back = (np.asarray(x) for x in _there_and_back(endings, part.pieces, numbers))
        group = [each for each in endings.parts if each.group == part.group]
        quiet = (following >= group[0].first) & (following < group[1].stop)
        assert quiet.any()
        for row, slot in np.argwhere(quiet):
            assert np.isin(images[row], back[row, slot]).any()


@functools.partial(jax.jit, static_argnums=(0, 1))
def _there_and_back(endings, pieces, numbers):
    """The numbers after each move, those of the images of the positions, and the predecessors after each move."""
    states = jax.vmap(endings.from_position_number)(numbers)
    actions, valid = jax.vmap(lambda state: endings.legal_slots(state, pieces))(states)
    children = jax.vmap(jax.vmap(endings.step, (None, 0)))(states, actions)
    following = jax.vmap(jax.vmap(endings.position_number))(children)
    following = jnp.where(valid & ~children.terminated, following, endings.num_position_numbers)
    back = jax.vmap(jax.vmap(lambda child: endings.predecessors(child, pieces)))(
        jax.vmap(jax.vmap(endings.from_position_number))(following)
    )
    return following, jax.vmap(endings.image_numbers)(numbers), back


@pytest.mark.parametrize(
    ("name", "options", "pieces", "message"),
    [
        ("brandub", {}, 0, "brandub: endings have 1 to 6 pieces beside the king, got 0"),
        ("brandub", {}, 7, "brandub: endings have 1 to 6 pieces beside the king, got 7"),
        ("hnefatafl", {}, 6, "hnefatafl: endings with 6 pieces beside the king have too many positions"),
        (
            "brandub",
            {"rules": "seed000"},
            2,
            "brandub: endings are for rules by which the defenders win when the attackers are gone",
        ),
    ],
)
def test_other_endings_are_refused(name, options, pieces, message):
    with pytest.raises(ValueError, match=message):
        azjax.make(name, **options).endings(pieces)
