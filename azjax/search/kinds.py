"""The policies that search, by name."""

from typing import Any

from azjax.core.errors import InputError
from azjax.games.game import AnyGame
from azjax.search.alphazero import AlphaZero
from azjax.search.dynamics import Evaluator
from azjax.search.gumbel import GumbelAlphaZero
from azjax.search.policy import SearchPolicy
from azjax.search.rules import rule_of
from azjax.search.uct import Uct

KINDS: dict[str, type[SearchPolicy]] = {"alphazero": AlphaZero, "gumbel": GumbelAlphaZero, "uct": Uct}


def make_policy(
    name: str, game: AnyGame, evaluator: Evaluator, num_simulations: int, *, selection: str = "puct", **options: Any
) -> SearchPolicy:
    """The policy of that name.

    Args:
      name: `alphazero`, `gumbel` or `uct`.
      game: the rules.
      evaluator: evaluates new leaves.
      num_simulations: in each tree.
      selection: a rule of `azjax.search.rules`, which `alphazero` takes.
      **options: other fields of the policy; a `rule` among them comes before `selection`.

    Raises:
      InputError: an unknown name or rule, or a rule for another policy than `alphazero`.
    """
    check_kind(name, selection)
    if name == "alphazero":
        options.setdefault("rule", rule_of(selection))
    return KINDS[name](game, evaluator, num_simulations, **options)


def check_kind(name: str, selection: str = "puct") -> None:
    """Raises InputError for an unknown policy or rule, and for a rule that the policy does not take."""
    if name not in KINDS:
        raise InputError(f"unknown policy {name!r}; available: {', '.join(KINDS)}")
    rule_of(selection)
    if name != "alphazero" and selection != "puct":
        raise InputError(f"selection {selection} needs the policy alphazero, got {name}")
