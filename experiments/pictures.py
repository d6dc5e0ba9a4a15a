"""Draws the pictures of the games.

Draws one position of each game, most with the policy of a search with 1,000 random rollouts (the large board would need
far more), one game of Connect Four as an animation, and a small search tree with its arrays. It takes about a minute on
2 CPU cores.

    python experiments/pictures.py

Writes docs/pictures/*.svg.
"""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float
from study import COLORS, DOCS, GRAY, run_study, save_figure, wide_figure

import azjax
from azjax.games.game import AnyGame, State
from azjax.games.protocols import action_from_text
from azjax.render import animate, svg
from azjax.render.tree_nodes import NodeSummary, node_summaries

PICTURES = DOCS / "pictures"
NUM_SIMULATIONS = 1000

# File, game, options, the moves from the start, and whether to search. The longer games were played by the search.
SANTORINI = (
    "b4-a3^b4 b2-a2^b1 a3-a4^b4 d2-d3^d2 a4-a3^b3 a2-b2^c2 a3-a4^b5 b2-c1^b1 d4-c4^b3 d3-e2^d3 c4-d5^e4 c1-d2^c3 "
    "d5-e4^e3 e2-d3^c2 a4-a5^a4 d3-c2^b3 a5-a4^b3 c2-b1^a2 a4-b4^a5 d2-d1^c1"
)
BRANDUB = (
    "d2-c2 d5-b5 d6-g6 b5-c5 a4-a3 d3-e3 f4-f1 e4-e5 a3-a6 e5-e7 d7-d6 e7-c7 b4-b5 c7-c6 c2-c1 c5-e5 d6-f6 c6-b6 f6-c6"
)
POSITIONS: list[tuple[str, str, dict[str, int], str, bool]] = [
    ("tictactoe", "tictactoe", {}, "a3 b2", True),
    ("connect2", "connect2", {}, "a1", True),
    ("connect_four", "connect_four", {}, "4 6 4 6 6 1 4 4 7 3 5", True),
    ("gomoku", "mnk", {"columns": 15, "rows": 15, "in_a_row": 5}, "h8 i9 i8 g8 h7 h9 g9 i7 f10 e11 h6 h5 j8", False),
    ("hex", "hex", {"size": 7, "swap": True}, "b6 d4 c5 d5 c6 e3 e4 d6 d3 c4", False),
    ("othello", "othello", {}, "f5 f6 d3 g5 e6 c5 d6 e3 g6 d2 c3 d7 h4 f4 e1 c1", False),
    ("chomp", "chomp", {"columns": 6, "rows": 4}, "d3 f2 c4", True),
    ("santorini", "santorini", {"size": 5, "workers": 2}, SANTORINI, True),
    ("brandub", "brandub", {}, BRANDUB, True),
    ("hnefatafl", "hnefatafl", {}, "h11-h9", False),
]
ANIMATED = ("connect_four", "4 6 4 6 6 1 4 4 7 3 5 4 4 5 5 2 2 1 2 2 1 1 5 5 7 7 2 2 5 7 7 6 6 3 3")


def main() -> None:
    """Draws all pictures."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    for file, name, options, moves, searched in POSITIONS:
        game = azjax.make(name, **options)
        states, actions = play(game, moves)
        policy = search(game, states[-1]) if searched else None
        write(file, svg(game, states[-1], policy=policy, last_action=actions[-1]))
    name, moves = ANIMATED
    game = azjax.make(name)
    write(f"{name}_game", animate(game, *play(game, moves)))
    draw_arrays(PICTURES / "tree_and_arrays.svg")


def play(game: AnyGame, moves: str) -> tuple[list[State], list[int]]:
    """The positions and the actions of a game, given its moves in the game's notation."""
    states, actions = [game.init(jax.random.key(0))], []
    step = jax.jit(game.step)
    for move in moves.split():
        actions.append(action_from_text(game, states[-1], move))
        states.append(step(states[-1], jnp.int32(actions[-1])))
    return states, actions


def search(game: AnyGame, state: State) -> Float[np.ndarray, "A"]:
    """The share of the simulations of each action."""
    policy = jax.jit(azjax.alphazero_policy, static_argnames=("game", "evaluator", "num_simulations"))
    result = policy(
        None,
        jax.random.key(0),
        jax.tree.map(lambda leaf: leaf[None], state),
        game=game,
        evaluator=azjax.evaluators.rollout(game),
        num_simulations=NUM_SIMULATIONS,
    )
    visits = np.asarray(result.visits[0])
    return visits / visits.sum()


def draw_arrays(path: Path, num_simulations: int = 12) -> None:
    """A search tree of Connect-2 and the rows of its arrays."""
    game = azjax.make("connect2")
    states = jax.tree.map(lambda leaf: leaf[None], game.from_text("_X__"))
    result = azjax.alphazero_policy(
        None,
        jax.random.key(0),
        states,
        game=game,
        evaluator=azjax.evaluators.rollout(game),
        num_simulations=num_simulations,
    )
    nodes = node_summaries(result.tree)
    figure, (left, right) = wide_figure(2, height=4.4)
    points = layout(nodes)
    for node in nodes.values():
        x, y = points[node.number]
        if node.parent is not None and node.action is not None:
            above = points[node.parent]
            left.plot([above[0], x], [above[1], y], color=GRAY, zorder=1)
            move = game.action_to_text(nodes[node.parent].state, node.action)
            left.annotate(move, ((above[0] + x) / 2, (above[1] + y) / 2), fontsize=8, backgroundcolor="white")
        left.scatter([x], [y], s=420, color=COLORS[2 if node.state.terminated else 0], zorder=2)
        left.annotate(str(node.number), (x, y), ha="center", va="center", color="white", fontweight="bold")
    left.margins(0.1)
    left.set_title("a tree (orange: the game is over)", fontsize=10)
    heads = ("row", "made by", "parent", "slot", "visits", "returns", "prior", "position")
    cells = [
        (
            str(node.number),
            "" if node.parent is None else f"simulation {node.number - 1}",
            "" if node.parent is None else str(node.parent),
            "" if node.action is None else str(node.action),
            str(node.visits),
            f"{node.value * node.visits:+.0f}",
            f"{node.prior:.2f}",
            game.to_text(node.state),
        )
        for node in nodes.values()
    ]
    shown = right.table(cells, colLabels=heads, loc="center", cellLoc="center", edges="horizontal")
    shown.auto_set_font_size(False)
    shown.set_fontsize(8)
    shown.auto_set_column_width(list(range(len(heads))))
    shown.scale(1, 1.35)
    right.set_title("its rows of the arrays [N, B, ...]", fontsize=10)
    for panel in (left, right):
        panel.axis("off")
    save_figure(figure, path)


def layout(nodes: dict[int, NodeSummary]) -> dict[int, tuple[float, float]]:
    """The point (x, y) of each node: above the middle of its children."""
    points: dict[int, tuple[float, float]] = {}
    leaves = 0

    def add(node: NodeSummary) -> float:
        nonlocal leaves
        below = [add(nodes[child]) for child in sorted(node.children)]
        if not below:
            leaves += 1
        x = (below[0] + below[-1]) / 2 if below else float(leaves)
        points[node.number] = (x, -node.depth)
        return x

    add(nodes[0])
    return points


def write(file: str, picture: str) -> None:
    path = PICTURES / f"{file}.svg"
    path.write_text(f"{picture}\n", encoding="utf-8")
    print(f"{path}: {len(picture)} bytes")


if __name__ == "__main__":
    run_study(main)
