"""A network's tree search in plain Python, as a notebook would write it: what our search is compared with.

A node object for each position, its children in a dict. As in the well-known notebooks, a leaf that is visited the
second time gets all its children at once, each judged when it is made.
"""

import copy
import random

from azjax.benchmark.plain import BrandubWithRepetition

_NUM_ACTIONS = 7 * 7 * 24


class Node:
    """A position of Brandub in a search tree. `value` is seen by the player to move."""

    def __init__(self, position: BrandubWithRepetition, prior: float, value: float):
        self.position, self.prior, self.value = position, prior, value
        self.children: dict[tuple, Node] = {}
        self.visits, self.returns = 0, 0.0

    def expand(self, rng: random.Random) -> None:
        """Makes all children; priors and values are random, and an end has its true value."""
        actions = self.position.actions()
        logits = [rng.random() for _ in range(_NUM_ACTIONS)]  # for every action, as a network gives them
        total = sum(logits[: len(actions)])
        for action, logit in zip(actions, logits, strict=False):
            following, drawn = _after(self.position, action)
            value = (0.0 if drawn else -1.0) if following.over else rng.uniform(-1, 1)
            self.children[action] = Node(following, logit / total, value)

    def best_child(self) -> "Node":
        """By PUCT."""
        exploration = 1.25 * self.visits**0.5
        return max(
            self.children.values(),
            key=lambda child: child.returns / max(child.visits, 1) + exploration * child.prior / (1 + child.visits),
        )


def search(num_simulations: int, seed: int) -> Node:
    """The root of a tree from the start of Brandub; a position that comes the second time is a draw."""
    rng = random.Random(seed)
    root = Node(BrandubWithRepetition(), 1.0, rng.uniform(-1, 1))
    root.visits = 1
    for _ in range(num_simulations):
        path = [root]
        while path[-1].visits and not path[-1].position.over:
            if not path[-1].children:
                path[-1].expand(rng)
            path.append(path[-1].best_child())
        value = path[-1].value
        for node in reversed(path):
            value = -value  # players take turns; a node's return is seen by the player above it
            node.visits, node.returns = node.visits + 1, node.returns + value
    return root


def _after(position: BrandubWithRepetition, action: tuple) -> tuple[BrandubWithRepetition, bool]:
    """The next position, and whether the game ended there as a draw; all other ends are won by who moved."""
    following = copy.copy(position)
    following.board, following.seen = dict(position.board), set(position.seen)
    following.play(action)
    repeated = len(following.seen) == len(position.seen)
    return following, following.over and (repeated or following.ply >= following.MAX_PLIES)
