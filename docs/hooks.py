"""What the site is made of beside its pages: tables of the committed results, cards of the agents, and formulas.

A line `{{ name }}` of a page becomes the table of that name in `TABLES`. Formulas become MathML, which browsers show
without a script.
"""

import html
import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "experiments" / "results"
PACKAGED = ROOT / "azjax" / "packaged"


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fills in the tables; called by MkDocs for each page."""
    return re.sub(r"^\{\{ (\w+) \}\}$", lambda found: TABLES[found[1]](), markdown, flags=re.M)


def on_page_content(content: str, **_: Any) -> str:
    """Turns what `pymdownx.arithmatex` marked as formulas into MathML; called by MkDocs for each page."""
    return re.sub(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', _formula, content, flags=re.S)


def _formula(found: re.Match[str]) -> str:
    return convert(html.unescape(found[2]), display="block" if found[1] == "div" else "inline")


def search() -> str:
    """Simulations per second."""
    heads = ("game", "A", "B", "N", "evaluator", "azjax", "on 2 devices", "rival", "ratio", "on 2 devices")
    return table(heads, (search_cells(row) for row in rows_of("search")))


def search_cells(row: dict[str, Any]) -> list[str]:
    """Of one row of `azjax benchmark search`."""
    rates = row["simulations_per_second"]
    sizes = [f"{row[field]:,}" for field in ("actions", "batch", "num_simulations")]
    own = [f"{rates[side]:,}" if side in rates else "" for side in ("azjax", "azjax on all devices")]
    rival = f"{row['rival']} {rates[row['rival']]:,}"
    return [row["game"], *sizes, f"`{row['evaluator']}`", *own, rival, *_ratios(row)]


def search_on_a_second_machine() -> str:
    """Ratios alone."""
    heads = ("game", "B", "N", "evaluator", "ratio", "on 2 devices")
    return table(
        heads,
        (
            [
                row["game"],
                f"{row['batch']:,}",
                f"{row['num_simulations']:,}",
                f"`{row['evaluator']}`, beside {row['rival']}",
                *_ratios(row),
            ]
            for row in rows_of("search_second_machine")
        ),
    )


def _ratios(row: dict[str, Any]) -> list[str]:
    return [f"{row[name]:,.1f}" if name in row else "" for name in ("ratio", "ratio_on_all_devices")]


def games() -> str:
    """Steps per second of random play."""
    rows = rows_of("games")
    batches = sorted({row["batch"] for row in rows})
    rivals = list(dict.fromkeys(side for row in rows for side in row["steps_per_second"] if side != "azjax"))
    heads = ["game", *(f"B={batch:,}" for batch in batches), *rivals]
    lines = []
    for game in dict.fromkeys(row["game"] for row in rows):
        own = [row for row in rows if row["game"] == game]
        last = own[-1]
        cells = [f"{row['steps_per_second']['azjax']:,}" for row in own]
        for rival in rivals:
            told = last["steps_per_second"].get(rival)
            cells.append("" if told is None else f"{told:,} ({last['ratio'][rival]:,.3g}x)")
        lines.append([game, *cells])
    return table(heads, lines)


def self_play() -> str:
    """Positions per second of the whole loop."""
    heads = ("network", "azjax", "pgx + mctx", "ratio", "share of the network alone in ours")
    return table(
        heads,
        (
            [
                f"{row['network']} {row['depth']} x {row['width']}",
                *(f"{rate:,.0f}" for rate in row["positions_per_second"].values()),
                f"{row['ratio']:.2f}",
                f"{row['network_share']['azjax']:.2f}",
            ]
            for row in rows_of("self_play_speed")
        ),
    )


def holding_back() -> str:
    """Mistakes of networks that learned for equal time."""
    heads = ("", "positions", "positions a game", "network", "narrow", "with 400", "narrow, with 400")
    return table(
        heads,
        (
            [
                row["name"],
                f"{row['positions']:,}",
                f"{row['positions_per_game']:.1f}",
                *(f"{row[player][kind]:.1%}" for player in ("network", "search") for kind in ("mistakes", "narrow")),
            ]
            for row in rows_of("holding_back")
        ),
    )


def cards() -> str:
    """The cards of the agents that come with the package, one below the other."""
    texts = (path.read_text(encoding="utf-8") for path in sorted(PACKAGED.glob("*.md")))
    return "\n\n".join(re.sub(r"^#", "###", text, flags=re.M) for text in texts)


def rows_of(name: str) -> list[dict[str, Any]]:
    """Of a committed result."""
    return json.loads((RESULTS / f"{name}.json").read_text(encoding="utf-8"))["rows"]


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In Markdown; numbers stand to the right."""
    rows = list(rows)
    numeric = re.compile(r"[\d,.]*%?$")
    right = [all(numeric.match(row[column].partition(" ")[0]) for row in rows) for column in range(len(heads))]
    lines = [heads, ["---:" if to_the_right else "---" for to_the_right in right], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


TABLES: dict[str, Callable[[], str]] = {
    each.__name__: each for each in (search, search_on_a_second_machine, games, self_play, holding_back, cards)
}
