"""A policy of every kind, and two searches in a row, for tests of what all searches have in common."""

import jax

from azjax.core.pytree import replace_fields
from azjax.search import AlphaZero, GumbelAlphaZero, SearchHyper, Uct, advance
from azjax.search.rules import rule_of

NAMES = ("puct", "4 leaves", "solver", "variance_scaled", "regularized_policy", "relative_entropy")
NAMES += ("gumbel", "gumbel, 4 leaves", "uct", "uct with a solver")
_HYPER = SearchHyper(forced_playouts=2.0)


def policies(game, evaluator):
    """Every policy and rule, with one leaf and several, with a solver and without."""
    plain = game, evaluator, 48
    return {
        "puct": AlphaZero(*plain),
        "4 leaves": AlphaZero(*plain, leaves_per_step=4),
        "solver": AlphaZero(*plain, solver=True),
        **{
            name: AlphaZero(*plain, rule=rule_of(name))
            for name in ("variance_scaled", "regularized_policy", "relative_entropy")
        },
        "gumbel": GumbelAlphaZero(*plain),
        "gumbel, 4 leaves": GumbelAlphaZero(*plain, leaves_per_step=4),
        "uct": Uct(*plain),
        "uct with a solver": Uct(*plain, solver=True),
    }


def search_twice(policy, params, states):
    """The results of a search and of one that continues its tree after its action."""
    # Both continue a tree, so that they share a compilation.
    tree = policy.empty_tree(params, states, _HYPER)
    first = policy(params, jax.random.key(1), states, hyper=_HYPER, explore=True, tree=tree)
    following = jax.vmap(policy.game.step)(states, first.action)
    tree = replace_fields(advance(first.tree, first.action), histories=None)
    return first, policy(params, jax.random.key(2), following, hyper=_HYPER, explore=True, tree=tree)
