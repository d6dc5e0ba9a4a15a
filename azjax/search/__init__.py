"""A batch of tree searches as one fixed-shape array program."""

from azjax.search import evaluators
from azjax.search.dynamics import Evaluator
from azjax.search.policies import alphazero_policy, uct_policy
from azjax.search.tree import SearchResult, Tree

__all__ = ["Evaluator", "SearchResult", "Tree", "alphazero_policy", "evaluators", "uct_policy"]
