"""A batch of tree searches as one fixed-shape array program."""

from azjax.search import evaluators
from azjax.search.budget import search_within
from azjax.search.dynamics import Evaluator
from azjax.search.gumbel import gumbel_policy
from azjax.search.policies import alphazero_policy, uct_policy
from azjax.search.reuse import advance
from azjax.search.tree import SearchResult, Tree

__all__ = [
    "Evaluator",
    "SearchResult",
    "Tree",
    "advance",
    "alphazero_policy",
    "evaluators",
    "gumbel_policy",
    "search_within",
    "uct_policy",
]
