"""Gumbel AlphaZero in plain Python, one position at a time, to check `azjax.search.gumbel_policy` against.

It follows Danihelka et al. 2022: algorithm 1 at the root, equation 14 below it, the mixed value of appendix D, and Q
scaled to the range 0..1. Arithmetic is float32, slot by slot in ascending order. `K` and `A` as in `puct.py`.
"""

import dataclasses
from typing import Any

import numpy as np

from benchmarks.searches.puct import F32, Evaluate, Node, Result, Rules


@dataclasses.dataclass(frozen=True)
class Options:
    """See `gumbel_policy`."""

    max_num_considered_actions: int = 16
    maxvisit_init: float = 50.0
    value_scale: float = 0.1
    rescale_values: bool = True


def completed_q(node: Node) -> tuple[np.ndarray, np.float32]:
    """The completed Q of the slots, float32 [K], and the mixed value."""
    value, q = F32(node.value), node.mean_returns()
    prior_tried = excess = F32(0)
    for slot in np.flatnonzero(node.visits):
        prior_tried += node.prior[slot]
        excess += node.prior[slot] * (q[slot] - value)
    mixed = value
    if node.visits.any():
        mixed = value + F32(node.visits.sum()) / F32(node.visits.sum() + 1) * (excess / prior_tried)
    return np.where(node.visits > 0, q, mixed).astype(F32), mixed


def scaled_q(node: Node, num_actions: int, options: Options) -> np.ndarray:
    """float32 [K]: sigma(completed Q) of the slots, up to a constant of the node."""
    completed, mixed = completed_q(node)
    # The mixed value is part of the range while any action, legal or not, has no visits.
    some = [*completed[node.visits > 0], *([mixed] if np.count_nonzero(node.visits) < num_actions else [])]
    spread = max(max(some) - min(some), F32(1e-8)) if options.rescale_values else F32(1)
    scale = F32(options.maxvisit_init + node.visits.max()) * F32(options.value_scale) / spread
    return (completed - min(some)) * scale


def softmax(logits: np.ndarray) -> np.ndarray:
    weights = np.exp(logits - logits.max())
    return weights / weights.sum()


def interior_slot(node: Node, num_actions: int, options: Options) -> int:
    """The slot with the highest pi' - N / (1 + sum N); see `Node.best_slot` for ties."""
    legal = node.actions >= 0
    with np.errstate(divide="ignore"):
        logits = np.where(legal, np.log(np.maximum(node.prior, 0)), -np.inf)
    improved = softmax(logits + scaled_q(node, num_actions, options))
    scores = improved - node.visits.astype(F32) / F32(1 + node.visits.sum())
    scores[~legal] = -np.inf
    untried = [slot for slot in np.flatnonzero(legal) if slot not in node.children]
    candidates = [*node.children, *sorted(untried, key=lambda slot: -node.prior[slot])[:1]]
    return max(candidates, key=lambda slot: (scores[slot], -slot))


def halving_rounds(num_considered: int, num_simulations: int) -> list[int]:
    """The number of slots that each round of sequential halving visits once; the last round may be incomplete."""
    phases = int(np.ceil(np.log2(num_considered))) if num_considered > 1 else 1
    rounds: list[int] = []
    left = num_considered
    while sum(rounds) < num_simulations:
        rounds += [left] * max(1, num_simulations // (phases * left))
        left = max(2, left // 2) if num_considered > 1 else 1
    return rounds


def search(
    rules: Rules,
    evaluate: Evaluate,
    position: Any,
    num_simulations: int,
    num_actions: int,
    noise: np.ndarray,
    options: Options,
) -> Result:
    """Runs `num_simulations` simulations from `position`; `noise` float32 [K] is added to the root's logits."""
    root = Node(rules, evaluate, position)
    if position.terminal:
        return Result(
            0, np.zeros(num_actions, F32), F32(0), np.zeros(num_actions, int), np.zeros(num_actions, F32), root
        )
    legal = np.flatnonzero(root.actions >= 0)
    logits = np.full(len(root.actions), -np.inf, F32)
    logits[legal] = np.log(root.prior[legal])

    def best(slots: Any) -> int:
        scores = noise + logits + scaled_q(root, num_actions, options)
        return max(slots, key=lambda slot: scores[slot])

    simulations = 0
    for size in halving_rounds(min(options.max_num_considered_actions, len(legal)), num_simulations):
        # The candidates of a round are the slots with the most visits at its start.
        candidates = legal[root.visits[legal] == root.visits.max()]
        for _ in range(min(size, num_simulations - simulations)):
            slot = best(candidates)
            candidates = candidates[candidates != slot]
            simulate(rules, evaluate, root, slot, num_actions, options)
            simulations += 1

    winner = best(legal[root.visits[legal] == root.visits.max()])
    visits, q_values, policy = np.zeros(num_actions, int), np.zeros(num_actions, F32), np.zeros(num_actions, F32)
    visits[root.actions[legal]] = root.visits[legal]
    q_values[root.actions[legal]] = root.mean_returns()[legal]
    improved = softmax((logits + scaled_q(root, num_actions, options))[legal])
    policy[root.actions[legal]] = improved
    value = np.sum(improved * completed_q(root)[0][legal])
    return Result(int(root.actions[winner]), policy, value, visits, q_values, root)


def simulate(rules: Rules, evaluate: Evaluate, root: Node, first_slot: int, num_actions: int, options: Options) -> None:
    """Runs one simulation that begins with `first_slot`."""
    path: list[tuple[Node, int]] = []
    node, is_new = root, False
    while not (node.position.terminal or is_new):
        slot = interior_slot(node, num_actions, options) if path else first_slot
        path.append((node, slot))
        is_new = slot not in node.children
        if is_new:
            node.children[slot] = Node(rules, evaluate, rules.step(node.position, int(node.actions[slot])))
        node = node.children[slot]
    value = F32(node.value)
    for parent, slot in reversed(path):
        child = parent.children[slot].position
        discount = 0 if child.terminal else 1 if child.player == parent.position.player else -1
        value = F32(child.rewards[parent.position.player]) + F32(discount) * value
        parent.visits[slot] += 1
        parent.return_sums[slot] += value
