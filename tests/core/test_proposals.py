import pytest

from azjax.core.proposals import did_you_mean


@pytest.mark.parametrize(
    ("word", "proposal"),
    [("trian", " (did you mean train?)"), ("gpt", " (did you mean gtp?)"), ("fly", ""), ("", "")],
)
def test_the_closest_word_is_proposed_if_one_is_close(word, proposal):
    assert did_you_mean(word, ["train", "gtp", "play"]) == proposal
