"""Exact values in play: solved games and endings in files, as players and as leaves of searches.

Axis letters: `B` batch, `A` actions.
"""

import dataclasses
from pathlib import Path
from typing import TypeAlias

import jax.numpy as jnp
from jaxtyping import Array, Float, PRNGKeyArray, PyTree

from azjax.core.errors import InputError
from azjax.core.files import check_can_write
from azjax.evaluation import retrograde, solution_file
from azjax.evaluation.archive import game_of_archive, kind_of_archive
from azjax.evaluation.retrograde import EndingSolution, load_endings
from azjax.evaluation.solution import BestMoves, Solution
from azjax.evaluation.solution_file import load_solution
from azjax.games.game import AnyGame, State
from azjax.search import Evaluator

_OTHER_MOVES = -30.0  # prior logit

Table: TypeAlias = Solution | EndingSolution


def load_table(path: str | Path, game: AnyGame | None = None) -> Table:
    """Reads a file of `azjax solve --output`: a solution, or endings.

    Args:
      path: the file.
      game: the game that it must belong to; None to take the game of the file.

    Raises:
      InputError: the file is missing or damaged, or belongs to another game or to other rules.
    """
    kind = kind_of_archive(path)
    if kind == solution_file.KIND:
        return load_solution(path, game)
    if kind == retrograde.KIND:
        return load_endings(path, game)
    raise InputError(f"{path} is no solution and has no endings: it is of kind {kind}")


def game_of_table(path: str | Path) -> AnyGame:
    """The game of a file that `load_table` reads.

    Raises:
      InputError: the file is missing or damaged.
    """
    return game_of_archive(path, kind_of_archive(path))


def check_can_replace(path: str | Path) -> None:
    """Checks, before a game is solved, that its values can be saved to the path, and that nothing else is lost.

    Raises:
      InputError: no file can be written there, or there is one without exact values.
    """
    check_can_write(path)
    if Path(path).is_file() and Path(path).stat().st_size:
        try:
            replaced = kind_of_archive(path)
        except InputError:
            replaced = ""
        if replaced not in (solution_file.KIND, retrograde.KIND):
            raise InputError(f"{path} exists and holds no exact values; name another file")


@dataclasses.dataclass(frozen=True)
class ExactLeaves:
    """An evaluator that knows the positions of a table: their values are exact, and the best moves have the priors.

    In endings the best moves are the fastest wins, so that a search which plays the prior's move wins and does not go
    round in circles; in a solution, whose positions do not come back, all that keep the value. Other positions are
    evaluated by `evaluator`. `params` are the parameters of that evaluator, and the table (`Table.best_moves()`).
    """

    evaluator: Evaluator
    game: AnyGame

    def __call__(
        self, params: tuple[PyTree, BestMoves], key: PRNGKeyArray, states: State
    ) -> (
        tuple[Float[Array, "B A"], Float[Array, "B"]] | tuple[Float[Array, "B A"], Float[Array, "B"], Float[Array, "B"]]
    ):
        inner, table = params
        prior_logits, value, *error = self.evaluator(inner, key, states)
        known, exact, actions, best = table.best_moves(self.game, states)
        batch = jnp.arange(len(known))[:, None]
        is_best = jnp.zeros(prior_logits.shape, bool).at[batch, actions].max(best)
        exact_logits = jnp.where(is_best, 0.0, _OTHER_MOVES).astype(prior_logits.dtype)
        prior_logits = jnp.where(known[:, None], exact_logits, prior_logits)
        value = jnp.where(known, exact.astype(value.dtype), value)
        if not error:
            return prior_logits, value
        return prior_logits, value, jnp.where(known, 0.0, error[0])
