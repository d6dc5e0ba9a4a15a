import dataclasses

import jax.numpy as jnp
import numpy as np
import pytest

from azjax.core.errors import InputError
from azjax.core.whole_numbers import set_whole, whole


@dataclasses.dataclass(frozen=True)
class Board:
    size: object

    def check(self, allowed, where=""):
        set_whole(self, "board", "size", allowed, where)
        return self


@pytest.mark.parametrize("value", [5, np.int64(5), np.uint8(5), np.array(5), jnp.int32(5)], ids=repr)
def test_whole_numbers_of_every_library_become_those_of_python(value):
    assert type(whole(value)) is int
    size = Board(value).check(range(1, 6)).size
    assert (type(size), size) == (int, 5)


@pytest.mark.parametrize("value", [True, np.True_, 5.0, np.float32(5), "5", None, np.array([5])], ids=repr)
def test_other_values_are_no_whole_numbers(value):
    assert whole(value) is None
    with pytest.raises(InputError, match=r"^board: size must be 1\.\.5, got "):
        Board(value).check(range(1, 6))


def test_a_number_that_is_not_allowed_is_refused_with_those_that_are():
    with pytest.raises(InputError, match=r"^board: size must be 1\.\.5 here, got 6$"):
        Board(6).check(range(1, 6), " here")
    with pytest.raises(InputError, match=r"^board: size must be 4, 6 or 8, got 5$"):
        Board(5).check((4, 6, 8))
