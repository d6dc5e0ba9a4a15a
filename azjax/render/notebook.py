"""What notebooks show: a state as its board, a batch as its first boards, a search as a table with its tree, a game
record as slides, and a player as a card.
"""

import functools
import html

import jax
import numpy as np
from jaxtyping import Float

from azjax.core import display
from azjax.core.pytree import is_concrete
from azjax.evaluation.game_record import GameRecord
from azjax.evaluation.players import Player
from azjax.evaluation.standard_players import player_facts
from azjax.games.game import AnyGame, Game, State
from azjax.games.pictures import has_picture
from azjax.games.protocols import action_to_text, player_names
from azjax.render.animation import slideshow
from azjax.render.picture import svg
from azjax.render.tree_nodes import NodeSummary, move_text, node_summaries
from azjax.render.tree_picture import to_svg
from azjax.render.tree_text import proof, signed
from azjax.search.result import SearchResult
from azjax.search.tree import ROOT

_MAX_BOARDS = 6  # of a batch
_MAX_MOVES, _MAX_NODES = 8, 7  # of a search
_CARD_STYLE = (
    ".azjax-card{--card:#fcfbf8;--ink:#33353b;--faint:#6d6d68;--line:#dedad0;box-sizing:border-box;max-width:46rem;"
    "padding:1rem 1.1rem;border:1px solid var(--line);border-radius:.8rem;background:var(--card);color:var(--ink);"
    "font:15px/1.5 system-ui,sans-serif}"
    "@media(prefers-color-scheme:dark){.azjax-card{--card:#1d1f24;--ink:#e8e6e1;--faint:#9b9fa8;--line:#3a3d45}}"
    ".azjax-card .sides{display:flex;flex-wrap:wrap;gap:1.4rem;align-items:flex-start}"
    ".azjax-card .board{flex:1 1 15rem;max-width:22rem}"
    ".azjax-card p{margin:0 0 .5rem}.azjax-card .faint{color:var(--faint);font-size:13px}"
    ".azjax-card .moves{border-collapse:collapse;font-size:14px;font-variant-numeric:tabular-nums;margin:0}"
    ".azjax-card .moves :is(tr,th,td){background:none;color:inherit;border:0;text-align:right}"
    ".azjax-card .moves :is(th,td){padding:.15rem 0 .15rem 1.2rem;border-bottom:1px solid var(--line)}"
    ".azjax-card .moves th{color:var(--faint);font-weight:400}"
    ".azjax-card .moves :is(th,td):first-child{padding-left:0;text-align:left}"
    ".azjax-card .sides+p{margin-top:1rem}"
    ".azjax-card dl{display:grid;grid-template-columns:auto 1fr;gap:.2rem 1.2rem;margin:0}"
    ".azjax-card dt{color:var(--faint);font-weight:400}.azjax-card dd{margin:0;white-space:pre-wrap}"
)


@functools.singledispatch
def mimebundle(value: object) -> dict[str, str]:
    """The representations of `value` by MIME type; empty if notebooks should show its plain text.

    A state is drawn if it knows its game (a field `game`) and the game has a picture. Values that are traced, abstract
    (shapes alone) or deleted have no picture.
    """
    game = getattr(value, "game", None)
    if not (isinstance(game, Game) and has_picture(game) and isinstance(value, State) and is_concrete(value)):
        return {}
    terminated = value.terminated
    if terminated is None or terminated.dtype != bool or terminated.ndim > 1:  # no state, such as a mean of states
        return {}
    if terminated.ndim == 0:
        return {"image/svg+xml": svg(game, value)}
    return {"text/html": _boards_html(game, value, len(terminated))}


@mimebundle.register
def _(record: GameRecord) -> dict[str, str]:
    if not has_picture(record.game):
        return {}
    states, actions = record.replay()
    sides = (f"{player} ({side})" for player, side in zip(record.players, player_names(record.game), strict=True))
    plies = f"{len(actions)} {'ply' if len(actions) == 1 else 'plies'}"
    title = f"{' against '.join(sides)}: {_outcome(record)}, {plies}"
    return {"text/html": slideshow(record.game, states, actions, title=title)}


@mimebundle.register
def _(result: SearchResult) -> dict[str, str]:
    """Of a batch, the first position."""
    if not is_concrete(result) or result.action.ndim != 1:
        return {}
    nodes = node_summaries(result.tree)
    game = getattr(nodes[ROOT].state, "game", None)
    if not isinstance(game, Game) or not has_picture(game):
        return {}
    return {"text/html": _search_html(result, game, nodes)}


@mimebundle.register
def _(player: Player) -> dict[str, str]:
    told = player_facts(player)
    title = told.pop("agent", told["player"])
    rows = (f"<dt>{html.escape(label)}</dt><dd>{html.escape(fact)}</dd>" for label, fact in told.items())
    card = f"<p><b>{html.escape(title)}</b></p><dl>{''.join(rows)}</dl>"
    return {"text/html": f'<div class="azjax-card"><style>{_CARD_STYLE}</style>{card}</div>'}


def _boards_html(game: AnyGame, states: State, batch: int) -> str:
    count = min(batch, _MAX_BOARDS)
    pictures = (svg(game, jax.tree.map(lambda leaf: leaf[row], states)) for row in range(count))
    boards = "".join(f'<div style="flex:0 1 15rem">{_fitted(picture)}</div>' for picture in pictures)
    caption = f"{count} of {batch:,} positions of {html.escape(game.name)}"
    return f'<div>{caption}</div><div style="display:flex;flex-wrap:wrap;gap:.6rem">{boards}</div>'


def _outcome(record: GameRecord) -> str:
    """How the game ended."""
    if record.rewards is None:
        return "unfinished"
    first, second = record.rewards
    outcome = "drawn" if first == second else f"{player_names(record.game)[int(second > first)]} won"
    return outcome if record.end is None else f"{outcome} ({record.end})"


def _search_html(result: SearchResult, game: AnyGame, nodes: dict[int, NodeSummary]) -> str:
    """The first root with the search's policy, its moves, and the top of its tree."""
    root, policy, batch = nodes[ROOT], jax.device_get(result.policy[0]), len(result.action)
    first = f", the first of {batch:,} positions" if batch > 1 else ""
    heading = f"{game.name}: {int(result.visits[0].sum()):,} simulations{first}"
    facts = ["the game is over"]
    if not root.state.terminated:
        move = action_to_text(game, root.state, int(result.action[0]))
        value = f"{signed(float(result.value[0]))} for {player_names(game)[int(root.state.current_player)]}"
        facts = [f"move {move}", f"value {value}", proof(root) and f"proven: {proof(root)}"]
    return "".join(
        [
            f'<div class="azjax-card"><style>{_CARD_STYLE}</style><div class="sides">',
            f'<div class="board">{_fitted(svg(game, root.state, policy=policy))}</div>',
            f"<div><p><b>{html.escape(heading)}</b></p><p>{html.escape('; '.join(filter(None, facts)))}</p>",
            _moves_html(game, nodes, policy),
            "</div></div><p><b>The top of the tree</b></p>",
            f"<div>{_fitted(to_svg(result.tree, game, max_nodes=_MAX_NODES))}</div></div>",
        ]
    )


def _moves_html(game: AnyGame, nodes: dict[int, NodeSummary], policy: Float[np.ndarray, "A"]) -> str:
    """A table of the most visited moves of the root."""
    children = [nodes[child] for child in nodes[ROOT].children]
    rows = [["move", "visits", "policy", "prior", "value", "proven"]]
    for child in children[:_MAX_MOVES]:
        move, share = move_text(nodes, game, child), f"{float(policy[child.action]):.1%}"
        rows.append([move, f"{child.visits:,}", share, f"{child.prior:.3f}", signed(child.value), proof(child)])
    # A search that counts wins has no priors; without a solver nothing is proven.
    hidden = {"prior"} if nodes[ROOT].wins is not None else set()
    hidden |= {"proven"} if nodes[ROOT].bounds is None else set()
    columns = [column for column, name in enumerate(rows[0]) if name not in hidden]
    lines = [
        "".join(f"<{tag}>{html.escape(row[column])}</{tag}>" for column in columns)
        for row, tag in zip(rows, ["th", *["td"] * len(rows)], strict=False)
    ]
    rest = len(children) - _MAX_MOVES
    more = f'<p class="faint">and {rest} more</p>' if rest > 0 else ""
    return f"<table class='moves'>{''.join(f'<tr>{line}</tr>' for line in lines)}</table>{more}"


def _fitted(picture: str) -> str:
    """An SVG document that keeps its width on a page, but is never wider than what contains it."""
    return picture.replace("<svg ", '<svg style="max-width:100%;height:auto" ', 1)


display.set_renderer(mimebundle)
