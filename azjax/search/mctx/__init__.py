"""The API of mctx 0.0.71 on azjax's search: a program written for mctx changes its import and nothing else.

`docs/coming_from_mctx.md` lists what is here, what is not, and where results differ.
"""

from azjax.search.mctx.model import RecurrentFn, RecurrentFnOutput, RecurrentState, RootFnOutput
from azjax.search.mctx.policies import PolicyOutput, gumbel_muzero_policy, muzero_policy
from azjax.search.mctx.qtransforms import (
    qtransform_by_min_max,
    qtransform_by_parent_and_siblings,
    qtransform_completed_by_mix_value,
)
from azjax.search.mctx.tree import GumbelMuZeroExtraData, SearchSummary, Tree

__all__ = [
    "GumbelMuZeroExtraData",
    "PolicyOutput",
    "RecurrentFn",
    "RecurrentFnOutput",
    "RecurrentState",
    "RootFnOutput",
    "SearchSummary",
    "Tree",
    "gumbel_muzero_policy",
    "muzero_policy",
    "qtransform_by_min_max",
    "qtransform_by_parent_and_siblings",
    "qtransform_completed_by_mix_value",
]
