"""UCT in plain Python, with given results of rollouts, to check `azjax.search.uct_policy` against.

A node counts its visits and the wins of each player, as in the usual textbook version of the algorithm. Arithmetic is
float32 in a fixed order. `K` is the number of child slots of a node, `A` the number of actions.
"""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.searches.puct import F32, Result, Rules

Rollout = Callable[[Any], float]
"""position -> the result of a rollout from this position, for the player to move: 1, 0 or -1."""


class Node:
    """A visited position.

    Attributes:
      number: 1 + the simulation that made the node; 0 for the root.
      mover: the player who moved to this position; at the root the player to move.
      count: number of visits.
      wins: number of won visits, by player.
    """

    def __init__(self, rules: Rules, position: Any, mover: int, number: int):
        self.position, self.mover, self.number = position, mover, number
        self.actions = np.array([] if position.terminal else rules.slots(position), int)
        self.children: dict[int, Node] = {}  # by slot
        self.count = 0
        self.wins = [0, 0]

    def returns(self) -> int:
        """Wins minus losses of `mover`."""
        return self.wins[self.mover] - self.wins[1 - self.mover]

    def mean_return(self) -> np.float32:
        return F32(self.returns()) / F32(max(self.count, 1))

    def untried_slot(self) -> int | None:
        """The lowest legal slot without a child."""
        return next((slot for slot, a in enumerate(self.actions) if a >= 0 and slot not in self.children), None)

    def best_slot(self, exploration: float) -> int:
        """The slot of the child with the highest UCB1 score, the lowest slot on ties."""
        weight = F32(exploration) * np.sqrt(np.log(F32(self.count)))

        def score(slot: int) -> np.float32:
            child = self.children[slot]
            return child.mean_return() + weight * (F32(1) / np.sqrt(F32(child.count)))

        return max(sorted(self.children), key=score)

    def descendants(self) -> Iterator["Node"]:
        """The node and all of its descendants."""
        yield self
        for child in self.children.values():
            yield from child.descendants()


def search(
    rules: Rules,
    rollout: Rollout,
    position: Any,
    num_simulations: int,
    num_actions: int,
    exploration: float = 2**0.5,
) -> Result:
    """Runs `num_simulations` simulations; the action has the best mean return, the lowest action on ties."""
    root = Node(rules, position, position.player, 0)
    for simulation in range(0 if position.terminal else num_simulations):
        node, path, is_new = root, [root], False
        while not (node.position.terminal or is_new):
            slot = node.untried_slot()
            is_new = slot is not None
            if slot is None:
                slot = node.best_slot(exploration)
            else:
                child = rules.step(node.position, int(node.actions[slot]))
                node.children[slot] = Node(rules, child, node.position.player, simulation + 1)
            node = node.children[slot]
            path.append(node)
        end = node.position
        result = end.rewards[0] if end.terminal else rollout(end) * (1 if end.player == 0 else -1)  # for player 0
        for node in path:
            node.count += 1
            if result != 0:
                node.wins[0 if result > 0 else 1] += 1

    visits, q_values, tried = np.zeros(num_actions, int), np.zeros(num_actions, F32), np.zeros(num_actions, bool)
    for slot, child in root.children.items():
        action = root.actions[slot]
        visits[action], q_values[action], tried[action] = child.count, child.mean_return(), True
    action = int(np.argmax(np.where(tried, q_values, -np.inf)))
    policy = visits.astype(F32) / F32(max(visits.sum(), 1))
    return Result(action, policy, root.mean_return(), visits, q_values, root)
