import pytest

from azjax.core.json_text import parse_json


def test_json_is_read():
    assert parse_json(b'{"a": [1, -2.5, true, null, "x"], "b": 9223372036854775807}') == {
        "a": [1, -2.5, True, None, "x"],
        "b": 2**63 - 1,
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "Expecting property name"),
        (b'"\xff"', "utf-8"),
        ("[" * 100_000, "nested too deeply"),
        ('{"a": 9223372036854775808}', "the number 9223372036854775808... is too large"),
        ("1" + "0" * 10_000, "is too large"),
    ],
)
def test_what_cannot_be_read_is_a_value_error(text, message):
    with pytest.raises(ValueError, match=message):
        parse_json(text)
