"""PUCT search in plain Python, one position at a time, to check `azjax.search.alphazero_policy` against.

Arithmetic is float32 in a fixed order, so that a correct search agrees to the last bit. `K` is the number of child
slots of a node, `A` the number of actions.
"""

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Protocol

import numpy as np

F32 = np.float32


class Position(Protocol):
    """A position: the player to move, whether the game is over, and the rewards of the last step by player."""

    player: int
    terminal: bool
    rewards: tuple[float, float]


class Rules(Protocol):
    """Plain-Python rules of a game."""

    def slots(self, position: Any) -> Sequence[int]:
        """K action numbers; -1 in an empty slot."""

    def step(self, position: Any, action: int) -> Any:
        """The position after a legal action."""


Evaluate = Callable[[Any], tuple[np.ndarray, float]]
"""position -> (prior float32 [K] over its slots, value for the player to move)."""


class Node:
    """A visited position and the statistics of its children, all for the player to move at this node."""

    def __init__(self, rules: Rules, evaluate: Evaluate, position: Any):
        self.position = position
        self.actions = np.array([] if position.terminal else rules.slots(position), int)
        self.prior: np.ndarray
        self.prior, self.value = (np.zeros(0, F32), 0.0) if position.terminal else evaluate(position)
        self.children: dict[int, Node] = {}  # by slot, the oldest first
        self.passes = 1  # visits of the node, including its evaluation
        self.waits = False  # for its evaluation, while other leaves are selected
        self.visits = np.zeros(len(self.actions), int)
        self.return_sums = np.zeros(len(self.actions), F32)

    def best_slot(self, c_puct: float) -> int:
        """The slot with the largest score, the lowest one on ties.

        Among the slots without a child only the one with the highest prior (the lowest slot on ties) is considered.
        """
        scores = self.scores(c_puct)
        untried = np.where(self.actions >= 0, self.prior, -np.inf)
        untried[list(self.children)] = -np.inf
        new = int(np.argmax(untried))
        candidates = [*self.children, *([new] if untried[new] >= 0 else [])]
        return max(candidates, key=lambda slot: (scores[slot], -slot))

    def scores(self, c_puct: float) -> np.ndarray:
        """float32 [K]: the scores of the slots; -inf in empty slots."""
        # The square root of the visits without the evaluation of the node itself, at least 1.
        exploration = F32(c_puct) * np.sqrt(F32(max(self.passes - 1, 1)))
        scores = self.mean_returns() + exploration * (self.prior / (F32(1) + self.visits.astype(F32)))
        assert scores.dtype == F32
        scores[self.actions < 0] = -np.inf
        return scores

    def descendants(self) -> Iterator["Node"]:
        """The node and all of its descendants."""
        yield self
        for child in self.children.values():
            yield from child.descendants()

    def mean_returns(self) -> np.ndarray:
        """float32 [K]: the mean returns of the slots; 0 without visits."""
        return np.where(self.visits > 0, self.return_sums / np.maximum(self.visits, 1).astype(F32), F32(0))


@dataclasses.dataclass(frozen=True)
class Result:
    """The result of a search: the fields of `azjax.search.SearchResult`, and `root`, the tree."""

    action: int
    policy: np.ndarray
    value: np.float32
    visits: np.ndarray
    q_values: np.ndarray
    root: Any


def search(
    rules: Rules,
    evaluate: Evaluate,
    position: Any,
    num_simulations: int,
    num_actions: int,
    c_puct: float = 1.25,
    leaves_per_step: int = 1,
) -> Result:
    """Runs `num_simulations` simulations from `position` without noise and at temperature 0.

    A step selects `leaves_per_step` leaves one after the other and then evaluates them. Until then each selected path
    counts as a loss (-1) for the player of every node on it.
    """
    root = Node(rules, evaluate, position)
    root_sum = F32(root.value)
    for _ in range(0 if position.terminal else num_simulations // leaves_per_step):
        found = []
        for _ in range(leaves_per_step):
            path, node = _descend(rules, evaluate, root, c_puct)
            found.append((path, node))
            root.passes += 1
            for parent, slot in path:
                parent.visits[slot] += 1
                parent.children[slot].passes += 1
            if leaves_per_step > 1:
                node.waits = True
                root_sum -= F32(1)
                for parent, slot in path:
                    parent.return_sums[slot] -= F32(1)
        lost = F32(0) if leaves_per_step == 1 else F32(1)
        for path, node in found:
            node.waits = False
            value = F32(node.value)
            for parent, slot in reversed(path):
                child = parent.children[slot].position
                discount = 0 if child.terminal else 1 if child.player == parent.position.player else -1
                value = F32(child.rewards[parent.position.player]) + F32(discount) * value
                parent.return_sums[slot] += value + lost
            root_sum = root_sum + (value + lost)

    visits, q_values = np.zeros(num_actions, int), np.zeros(num_actions, F32)
    legal = root.actions >= 0
    visits[root.actions[legal]] = root.visits[legal]
    q_values[root.actions[legal]] = root.mean_returns()[legal]
    policy = visits.astype(F32) / F32(max(visits.sum(), 1))
    return Result(int(np.argmax(visits)), policy, root_sum / F32(root.passes), visits, q_values, root)


def _descend(rules: Rules, evaluate: Evaluate, root: Node, c_puct: float) -> tuple[list[tuple[Node, int]], Node]:
    """The path as pairs of node and slot, and its last node, which is new, terminal, or waits for its evaluation."""
    path: list[tuple[Node, int]] = []
    node, is_new = root, False
    while not (node.position.terminal or node.waits or is_new):
        slot = node.best_slot(c_puct)
        path.append((node, slot))
        is_new = slot not in node.children
        if is_new:
            child = rules.step(node.position, int(node.actions[slot]))
            node.children[slot] = Node(rules, evaluate, child)
            node.children[slot].passes = 0
        node = node.children[slot]
    return path, node


def assert_equal(result: Any, expected: Sequence[Result]) -> None:
    """Asserts that a `SearchResult` equals one `Result` for each row; `policy` and `value` up to rounding."""
    for field in ("visits", "q_values", "action"):
        np.testing.assert_array_equal(
            getattr(result, field), np.stack([getattr(row, field) for row in expected]), field
        )
    for field in ("policy", "value"):
        rows = np.stack([getattr(row, field) for row in expected])
        np.testing.assert_allclose(getattr(result, field), rows, rtol=0, atol=1e-6, err_msg=field)
