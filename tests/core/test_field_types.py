import dataclasses

import pytest

from azjax.core.errors import InputError
from azjax.core.field_types import check_field_types


@dataclasses.dataclass
class Settings:
    whole: int = 1
    real: float = 0.5
    truth: bool = True
    text: str = "a"
    perhaps: float | None = None
    several: tuple[int, ...] = ()


@pytest.mark.parametrize(
    "changes", [{}, {"real": 1}, {"perhaps": 2.0}, {"perhaps": 2}, {"several": (1, 2)}, {"other": 3}]
)
def test_right_types_pass(changes):
    check_field_types(Settings, changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"whole": 1.5}, r"whole must be a whole number, got 1\.5"),
        ({"whole": True}, "whole must be a whole number, got True"),
        ({"real": "x"}, "real must be a number, got 'x'"),
        ({"real": None}, "real must be a number, got None"),
        ({"truth": 0}, "truth must be true or false, got 0"),
        ({"text": 7}, "text must be a text, got 7"),
        ({"perhaps": "x"}, "perhaps must be a number, got 'x'"),
    ],
)
def test_wrong_types_are_named(changes, message):
    with pytest.raises(InputError, match=message):
        check_field_types(Settings, changes)
