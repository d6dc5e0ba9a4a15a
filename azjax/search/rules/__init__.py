"""Rules of selection by name, each in a file of its own, and the way to add one from outside.

Others belong to their policies: `ucb1.py` to `Uct`, `improved_policy.py` to `GumbelAlphaZero`, `muzero_puct.py` to
`azjax.search.mctx`.
"""

from collections.abc import Callable
from typing import TypeAlias, TypeVar

from azjax.core.registry import Registry
from azjax.games.game import AnyGame
from azjax.search.hyper import SearchHyper, traced
from azjax.search.rules.forced_playouts import ForcedPuct
from azjax.search.rules.puct import Puct
from azjax.search.rules.regularized_policy import RegularizedPolicy
from azjax.search.rules.relative_entropy import RelativeEntropy
from azjax.search.rules.variance_scaled import VarianceScaledPuct
from azjax.search.selection import Selection

Rule: TypeAlias = Callable[[SearchHyper, AnyGame], Selection]
"""Makes the rule of selection of a search of a game, from the numbers of the search."""

_Rule = TypeVar("_Rule", bound=Rule)
RULES: Registry[Rule] = Registry("rule of selection", "azjax.rules")


def register(name: str) -> Callable[[_Rule], _Rule]:
    """Decorator: gives a rule a name, which configurations and `azjax train --selection NAME` then take.

    Raises:
      InputError: the name is taken.
    """
    return RULES.register(name)


def rule_of(name: str) -> Rule:
    """The rule of that name.

    Raises:
      InputError: an unknown name.
    """
    rule = RULES.find(name)
    if rule is None:
        raise RULES.unknown(name, RULES.names())
    return rule


@register("puct")
def puct(hyper: SearchHyper, game: AnyGame) -> Selection:
    """`Puct`, with forced playouts where there are some."""
    del game
    rule = Puct(traced(hyper.c_puct), traced(hyper.first_play_urgency))
    return rule if hyper.forced_playouts is None else ForcedPuct(rule, traced(hyper.forced_playouts))


@register("variance_scaled")
def variance_scaled(hyper: SearchHyper, game: AnyGame) -> VarianceScaledPuct:
    """KataGo's; see `VarianceScaledPuct`."""
    del game
    return VarianceScaledPuct(traced(hyper.c_puct), traced(hyper.first_play_urgency))


@register("regularized_policy")
def regularized_policy(hyper: SearchHyper, game: AnyGame) -> RegularizedPolicy:
    """That of Grill et al.; see `RegularizedPolicy`."""
    return RegularizedPolicy(traced(hyper.c_puct), game.max_legal_actions)


@register("relative_entropy")
def relative_entropy(hyper: SearchHyper, game: AnyGame) -> RelativeEntropy:
    """A soft rule; see `RelativeEntropy`."""
    del hyper, game
    return RelativeEntropy()
