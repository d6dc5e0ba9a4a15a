"""A batch of tree searches as one fixed-shape array program."""

from azjax.search import evaluators
from azjax.search.alphazero import AlphaZero, alphazero_policy
from azjax.search.budget import search_within
from azjax.search.dynamics import Evaluator
from azjax.search.gumbel import GumbelAlphaZero, gumbel_policy
from azjax.search.hyper import SearchHyper
from azjax.search.kinds import make_policy
from azjax.search.policy import SearchPolicy
from azjax.search.result import SearchResult
from azjax.search.reuse import advance
from azjax.search.selection import Selection
from azjax.search.tree import Tree
from azjax.search.uct import Uct, uct_policy

__all__ = [
    "AlphaZero",
    "Evaluator",
    "GumbelAlphaZero",
    "SearchHyper",
    "SearchPolicy",
    "SearchResult",
    "Selection",
    "Tree",
    "Uct",
    "advance",
    "alphazero_policy",
    "evaluators",
    "gumbel_policy",
    "make_policy",
    "search_within",
    "uct_policy",
]
