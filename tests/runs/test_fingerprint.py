import dataclasses

import pytest

from azjax.games.registry import make
from azjax.games.mnk import Mnk
from azjax.runs.fingerprint import rules_fingerprint

GAME = make("connect2")


class Rewritten(Mnk):
    def observe(self, state):
        return super().observe(state) * 1.0


class OtherObservation(Mnk):
    def observe(self, state):
        return super().observe(state)[..., ::-1]


class OtherResult(Mnk):
    def step(self, state, action):
        following = super().step(state, action)
        return dataclasses.replace(following, rewards=-following.rewards)


class OtherSymmetries(Mnk):
    def symmetries(self, state):
        states, permutations = super().symmetries(state)
        return states, permutations[:, ::-1]


def _connect2(kind):
    return kind(**{field.name: getattr(GAME, field.name) for field in dataclasses.fields(GAME)})


def test_the_rules_of_connect2_are_those_of_the_runs_that_exist():
    assert rules_fingerprint(GAME) == "d6f76a36fab20a6b"


def test_code_may_change_while_the_rules_stay():
    assert rules_fingerprint(_connect2(Rewritten)) == rules_fingerprint(GAME)


@pytest.mark.parametrize("kind", [OtherObservation, OtherResult, OtherSymmetries])
def test_another_rule_has_another_fingerprint(kind):
    assert rules_fingerprint(_connect2(kind)) != rules_fingerprint(GAME)
