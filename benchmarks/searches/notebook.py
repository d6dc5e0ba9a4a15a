"""A tree search with a network for Brandub in plain Python, in the style of a notebook.

Each position is a node object with its children in a dict. As in the well-known notebooks, the second visit of a leaf
makes all of its children at once and evaluates each of them.
"""

import random

from benchmarks.rules.tafl import BrandubRules, Position

_NUM_ACTIONS = 7 * 7 * 24
_RULES = BrandubRules()


class Node:
    """A position in a search tree. `value` is for the player to move."""

    def __init__(self, position: Position, prior: float, value: float):
        self.position, self.prior, self.value = position, prior, value
        self.children: dict[int, Node] = {}
        self.visits, self.returns = 0, 0.0

    def expand(self, generator: random.Random) -> None:
        """Makes all children with random priors and values; a finished game has its true value."""
        actions = _RULES.legal_actions(self.position)
        logits = [generator.random() for _ in range(_NUM_ACTIONS)]  # for every action, like the output of a network
        total = sum(logits[: len(actions)])
        for action, logit in zip(actions, logits, strict=False):
            following = _RULES.step(self.position, action)
            value = following.rewards[following.player] if following.terminal else generator.uniform(-1, 1)
            self.children[action] = Node(following, logit / total, value)

    def best_child(self) -> "Node":
        """The child that PUCT chooses."""
        exploration = 1.25 * self.visits**0.5
        return max(
            self.children.values(),
            key=lambda child: child.returns / max(child.visits, 1) + exploration * child.prior / (1 + child.visits),
        )


def search(num_simulations: int, seed: int) -> Node:
    """Runs a search from the start of Brandub and returns the root."""
    generator = random.Random(seed)
    root = Node(_RULES.start(), 1.0, generator.uniform(-1, 1))
    root.visits = 1
    for _ in range(num_simulations):
        path = [root]
        while path[-1].visits and not path[-1].position.terminal:
            if not path[-1].children:
                path[-1].expand(generator)
            path.append(path[-1].best_child())
        value = path[-1].value
        for node in reversed(path):
            value = -value  # players take turns; a node's return is for the player of its parent
            node.visits, node.returns = node.visits + 1, node.returns + value
    return root
