"""What a search found, as a notebook shows it: the root with its policy, its moves, and the top of the tree."""

import html

import chex
import jax

from azjax.core.pytree import is_concrete
from azjax.games.game import Game
from azjax.games.protocols import action_to_text, player_names
from azjax.render.picture import fitted, svg
from azjax.render.tree_picture import to_svg
from azjax.render.tree_text import NodeView, made_nodes, move_text, proof, signed
from azjax.search.tree import ROOT, SearchResult

_MOST_MOVES, _MOST_NODES = 8, 7
_STYLE = (
    ".azjax-search{--card:#fcfbf8;--ink:#33353b;--faint:#6d6d68;--line:#dedad0;box-sizing:border-box;max-width:46rem;"
    "padding:1rem 1.1rem;border:1px solid var(--line);border-radius:.8rem;background:var(--card);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){.azjax-search{--card:#1d1f24;--ink:#e8e6e1;--faint:#9b9fa8;--line:#3a3d45}}"
    ".azjax-search .sides{display:flex;flex-wrap:wrap;gap:1.4rem;align-items:flex-start}"
    ".azjax-search .board{flex:1 1 15rem;max-width:22rem}"
    ".azjax-search p{margin:0 0 .5rem}.azjax-search .faint{color:var(--faint);font-size:13px}"
    ".azjax-search .moves{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums;margin:0}"
    ".azjax-search .moves :is(tr,th,td){background:none;color:inherit;border:0;text-align:right}"
    ".azjax-search .moves :is(th,td){padding:.15rem 0 .15rem 1.2rem;border-bottom:1px solid var(--line)}"
    ".azjax-search .moves th{color:var(--faint);font-weight:400}"
    ".azjax-search .moves :is(th,td):first-child{padding-left:0;text-align:left}"
    ".azjax-search .sides+p{margin-top:1rem}"
)


def search_to_html(result: SearchResult) -> str | None:
    """The first position of the batch; a piece of HTML without external references and scripts.

    Returns:
      None where there is nothing to show: of a traced result, and of a game whose states do not show themselves.
    """
    if not is_concrete(result) or result.action.ndim != 1:
        return None
    nodes = made_nodes(result.tree)
    root = nodes[ROOT]
    state, game = root.state, getattr(root.state, "game", None)
    if not isinstance(game, Game):
        return None
    shares = jax.device_get(result.policy[0])
    batch = len(result.action)
    first = f", the first of {batch:,} positions" if batch > 1 else ""
    heading = f"{game.name}: {int(result.visits[0].sum()):,} simulations{first}"
    value = f"{signed(float(result.value[0]))} for {player_names(game)[int(state.current_player)]}"
    parts = ["the game is over"]
    if not state.terminated:
        move = action_to_text(game, state, int(result.action[0]))
        parts = [f"move {move}", f"value {value}", proof(root) and f"proven: {proof(root)}"]
    return "".join(
        [
            f'<div class="azjax-search"><style>{_STYLE}</style><div class="sides">',
            f'<div class="board">{fitted(svg(game, state, policy=shares))}</div>',
            f"<div><p><b>{html.escape(heading)}</b></p><p>{html.escape('; '.join(filter(None, parts)))}</p>",
            _moves(game, nodes, shares),
            "</div></div><p><b>The top of the tree</b></p>",
            f"<div>{fitted(to_svg(result.tree, game, max_nodes=_MOST_NODES))}</div></div>",
        ]
    )


def _moves(game: Game, nodes: dict[int, NodeView], shares: chex.Array) -> str:
    """A table of the most visited moves of the root."""
    children = [nodes[child] for child in nodes[ROOT].children]
    rows = [["move", "visits", "policy", "prior", "value", "proven"]]
    for child in children[:_MOST_MOVES]:
        share = f"{float(shares[child.action]):.1%}"
        move = move_text(nodes, game, child)
        rows.append([move, f"{child.visits:,}", share, f"{child.prior:.3f}", signed(child.value), proof(child)])
    # Without rollouts' wins a search has priors; without a solver nothing is proven.
    hidden = {"prior"} if nodes[ROOT].wins is not None else set()
    hidden |= {"proven"} if nodes[ROOT].bounds is None else set()
    shown = [column for column, name in enumerate(rows[0]) if name not in hidden]
    lines = [
        "".join(f"<{tag}>{html.escape(row[column])}</{tag}>" for column in shown)
        for row, tag in zip(rows, ["th", *["td"] * len(rows)], strict=False)
    ]
    rest = len(children) - _MOST_MOVES
    more = f'<p class="faint">and {rest} more</p>' if rest > 0 else ""
    return f"<table class='moves'>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>{more}"
