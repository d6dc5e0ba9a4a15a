"""A policy that searches: an object of what is static, called with what is traced. Axis letters: see `tree.py`."""

import abc
import dataclasses
import functools
from typing import Any, cast

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PRNGKeyArray, PyTree

from azjax.core.errors import InputError
from azjax.core.whole_numbers import whole
from azjax.games.arguments import check_is_game, check_states
from azjax.games.game import AnyGame, State
from azjax.search import virtual_loss
from azjax.search.draws import Keys
from azjax.search.dynamics import Dynamics, Evaluator, GameDynamics, Root, evaluate_root
from azjax.search.hyper import BY_STATE, SearchHyper
from azjax.search.result import SearchResult
from azjax.search.reuse import check_tree, continue_tree, kept_nodes
from azjax.search.search import RootRule, new_tree, search
from azjax.search.selection import Selection
from azjax.search.tree import Tree

MOST_SIMULATIONS = 1 << 24  # visits are counted in float32


@dataclasses.dataclass(frozen=True)
class SearchPolicy(abc.ABC):
    """A search with all that is static. Hashable by value: equal policies share one compilation.

    game: the rules.
    evaluator: evaluates new leaves; see `azjax.search.evaluators`.
    num_simulations: new simulations in each tree, at least 1.
    leaves_per_step: leaves of each tree that are selected, with a virtual loss, before the evaluator is called once for
      all of them; for few trees and a costly evaluator. 1 is the plain search. It must divide `num_simulations`.
    solver: prove wins, losses and draws during the search. A proven root is searched no further, and a proven loss is
      played only where every action is one. Returns must lie in -1..1.
    max_nodes: capacity of each tree, root included; by default enough for `num_simulations`, or that of `tree`. A full
      tree goes on without making nodes, along the edges that it has.

    Raises:
      InputError: a number that is no whole number, num_simulations out of range or not a multiple of leaves_per_step,
        or max_nodes below 2 or not above leaves_per_step.
    """

    game: AnyGame
    evaluator: Evaluator
    num_simulations: int
    leaves_per_step: int = 1
    solver: bool = False
    max_nodes: int | None = None

    def __post_init__(self) -> None:
        check_is_game(self.game)
        if isinstance(self.evaluator, type) or not callable(self.evaluator):
            raise InputError(
                f"evaluator must be a function, such as azjax.evaluators.uniform(game), got {self.evaluator!r}"
            )
        if not isinstance(self.solver, bool):
            raise InputError(f"solver must be True or False, got {self.solver!r}")
        check_num_simulations(self.num_simulations, self.leaves_per_step)
        for name in ("num_simulations", "leaves_per_step", "max_nodes"):
            # Numbers of NumPy become Python's, which JSON can hold.
            object.__setattr__(self, name, whole(getattr(self, name)) or getattr(self, name))
        if self.max_nodes is not None and (whole(self.max_nodes) or 0) < 2:
            raise InputError(f"max_nodes must be a whole number of at least 2, got {self.max_nodes!r}")
        if self.max_nodes is not None and self.max_nodes <= self.leaves_per_step:
            # A step that does not fit makes no nodes.
            raise InputError(f"max_nodes must be above leaves_per_step = {self.leaves_per_step}, got {self.max_nodes}")

    def __call__(
        self,
        params: PyTree,
        key: Keys,
        states: State,
        *,
        hyper: SearchHyper | None = None,
        explore: bool = False,
        tree: Tree | None = None,
        donate_tree: bool = False,
    ) -> SearchResult:
        """Searches each state of a batch, jitted.

        Args:
          params: what the evaluator reads, such as a network's variables.
          key: consumed by noise, evaluator, rule of selection and choice of action. With a key for each state, all but
            the evaluator's draws depend on that key alone; the evaluator consumes the first.
          states: a batch of states; every leaf [B, ...].
          hyper: the numbers; the defaults if None.
          explore: with noise, temperature and forced playouts, as in self-play; without them the best move is played.
          tree: trees of an equal policy to continue, from an earlier call of the same game or from `advance`. A tree
            whose root is another position than its state is replaced by a new one; how a game came there, on which
            repetitions depend, is not compared.
          donate_tree: the result takes over the memory of `tree`, which nobody may read afterwards.

        Raises:
          InputError: one state in place of a batch, a batch of none, states whose types a step changes, keys or numbers
            of `hyper` for another batch, a `tree` that does not fit, an argument of another type, or a policy that is
            not hashable.
        """
        if not hasattr(states, "terminated"):
            raise InputError(f"states must be a batch of states of {self.game.name}, got a {type(states).__name__}")
        if len(shape := jnp.shape(states.terminated)) != 1:
            raise InputError(
                f"a search needs a batch of states, every leaf [B, ...], and `terminated` has the shape {list(shape)}; "
                "jax.tree.map(lambda leaf: leaf[None], state) is a batch of one"
            )
        if not shape[0]:
            raise InputError("a search needs one state or more, got a batch of none")
        try:
            hash(self)
        except TypeError as error:
            raise InputError(
                f"a policy must be hashable, with its game, evaluator and rule, as frozen dataclasses are: {error}; "
                "arrays are given as `params`"
            ) from None
        hyper = SearchHyper() if hyper is None else hyper
        if not isinstance(hyper, SearchHyper):
            raise InputError(f"hyper must be a SearchHyper, got a {type(hyper).__name__}")
        if type(explore) is not bool:
            raise InputError(f"explore must be True or False, and static, got {explore!r}")
        if tree is not None:
            check_tree(tree)
        _check_batch(shape[0], key, hyper)
        search = _jitted_search_in_place if donate_tree else _jitted_search
        result: SearchResult = search(self, params, key, states, hyper, explore, tree)
        return result

    @abc.abstractmethod
    def search(
        self, params: PyTree, key: Keys, states: State, hyper: SearchHyper, explore: bool, tree: Tree | None
    ) -> SearchResult:
        """See `__call__`."""

    @abc.abstractmethod
    def selection(self, hyper: SearchHyper, explore: bool) -> Selection:
        """The rule of selection."""

    @property
    def dynamics(self) -> GameDynamics:
        """What lies behind an edge."""
        return GameDynamics(self.game, self.evaluator)

    @property
    def evaluates_root(self) -> bool:
        """Whether the root's own evaluation counts as a visit."""
        return True

    def begin(self, root: Root, selection: Selection, tree: Tree | None) -> Tree:
        """The trees that a search starts with: new ones, or `tree` where its root is the same."""
        capacity = self.max_nodes or (self.num_simulations + 1 if tree is None else tree.max_nodes)
        make_tree = functools.partial(self._new_tree, root, selection, capacity)
        return make_tree() if tree is None else continue_tree(tree, root, make_tree, selection)

    def grow(
        self,
        params: PyTree,
        key: PRNGKeyArray,
        tree: Tree,
        selection: Selection,
        selection_keys: Key[Array, "B"] | None = None,
    ) -> Tree:
        """The trees after the simulations of this policy."""
        counts = self.num_simulations, self.leaves_per_step
        return grow(self.dynamics, params, key, tree, selection, *counts, selection_keys=selection_keys)

    def _new_tree(self, root: Root, selection: Selection, max_nodes: int) -> Tree:
        options: dict[str, Any] = {"leaves_per_step": self.leaves_per_step, "solver": self.solver}
        return new_tree(root, selection, max_nodes, evaluated=self.evaluates_root, **options)

    def empty_tree(self, params: PyTree, states: State, hyper: SearchHyper | None = None) -> Tree:
        """Trees without any node, so that a search of the states [B, ...] starts new ones, with room to be kept.

        They take the capacity of `max_nodes`, by default that of `azjax.search.reuse.kept_nodes`.
        """
        hyper, capacity = hyper or SearchHyper(), self.max_nodes or kept_nodes(self.num_simulations)

        def make(params: PyTree, states: State) -> Tree:
            root = evaluate_root(self.dynamics, params, jax.random.key(0), states)
            selection = self.selection(hyper, True)
            return self._new_tree(root, selection, capacity).without_histories()

        like = jax.eval_shape(make, params, states)
        return cast(Tree, jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), like))


def _check_batch(batch: int, key: Keys, hyper: SearchHyper) -> None:
    """Raises InputError for keys or numbers of another batch."""
    if not isinstance(key, jax.Array | np.ndarray):
        raise InputError(f"key must be a key, such as jax.random.key(0), got {key!r}")
    shape = key.shape if jnp.issubdtype(key.dtype, jax.dtypes.prng_key) else key.shape[:-1]
    if shape not in ((), (batch,)):
        raise InputError(f"key must be one key, or one for each of {batch} states, got the shape {list(shape)}")
    for field in dataclasses.fields(hyper):
        shape = () if (value := getattr(hyper, field.name)) is None else jnp.shape(value)
        if shape != () and not (shape == (batch,) and field.name in BY_STATE):
            or_each = f", or one for each of {batch} states" * (field.name in BY_STATE)
            raise InputError(f"{field.name} must be one number{or_each}, got the shape {list(shape)}")


def _search(
    policy: SearchPolicy,
    params: PyTree,
    key: Keys,
    states: State,
    hyper: SearchHyper,
    explore: bool,
    tree: Tree | None,
) -> SearchResult:
    check_states(policy.game, states, batched=True)
    # No gradient flows through a search, whose loops JAX could not differentiate.
    params, states, hyper, tree = jax.lax.stop_gradient((params, states, hyper, tree))
    return policy.search(params, key, states, hyper, explore, tree)


_STATIC = ("policy", "explore")
_jitted_search = jax.jit(_search, static_argnames=_STATIC)
_jitted_search_in_place = jax.jit(_search, static_argnames=_STATIC, donate_argnames="tree")


def grow(
    dynamics: Dynamics,
    params: PyTree,
    key: PRNGKeyArray,
    tree: Tree,
    selection: Selection,
    num_simulations: int,
    leaves_per_step: int = 1,
    *,
    selection_keys: Key[Array, "B"] | None = None,
    root_rule: RootRule | None = None,
) -> Tree:
    """The trees after the simulations; see `azjax.search.search.search`."""
    options: dict[str, Any] = {"selection_keys": selection_keys, "root_rule": root_rule}
    if leaves_per_step == 1:
        return search(dynamics, params, key, tree, selection, num_simulations, **options)
    return virtual_loss.search(dynamics, params, key, tree, selection, num_simulations, leaves_per_step, **options)


def check_num_simulations(num_simulations: int, leaves_per_step: int = 1) -> None:
    """Raises InputError for numbers that are out of range or not whole, or if the second does not divide the first."""
    for name, number in (("num_simulations", num_simulations), ("leaves_per_step", leaves_per_step)):
        if whole(number) is None:
            raise InputError(f"{name} must be a whole number, got {number!r}")
    if num_simulations < 1:
        raise InputError(f"num_simulations must be at least 1, got {num_simulations}")
    if num_simulations > MOST_SIMULATIONS:
        raise InputError(f"num_simulations must be at most {MOST_SIMULATIONS:,}, got {num_simulations:,}")
    if leaves_per_step < 1 or num_simulations % leaves_per_step:
        raise InputError(f"leaves_per_step must divide num_simulations = {num_simulations}, got {leaves_per_step}")
