"""MkDocs hooks: tables of the committed results, cards of the agents, formulas, and the agent that plays on the site.

A line `{{ name }}` of a page is replaced by the table of that name in `TABLES`. Formulas become MathML, which browsers
show without a script.
"""

import contextlib
import html
import io
import re
import shutil
from pathlib import Path
from typing import Any

import tables_of_results
import tables_of_speed
from latex2mathml.converter import convert

from azjax.commands.play import play_command

TABLES = tables_of_speed.TABLES | tables_of_results.TABLES


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Fills in the tables. MkDocs calls it for each page."""
    return re.sub(r"^\{\{ (\w+) \}\}$", lambda match: TABLES[match[1]](), markdown, flags=re.M)


def on_post_build(config: Any, **_: Any) -> None:
    """Puts the agent of `exhibition.md` on the site. MkDocs calls it once."""
    folder = Path(config["site_dir"]) / "exhibition"
    shutil.rmtree(folder, ignore_errors=True)
    with contextlib.redirect_stdout(io.StringIO()):
        play_command(["connect_four", "--export", str(folder), "--num-simulations", "128"])


def on_page_content(content: str, **_: Any) -> str:
    """Turns the formulas that `pymdownx.arithmatex` marked into MathML. MkDocs calls it for each page."""
    return re.sub(r'<(span|div) class="arithmatex">\\[(\[](.*?)\\[)\]]</\1>', _formula, content, flags=re.S)


def _formula(match: re.Match[str]) -> str:
    return convert(html.unescape(match[2]), display="block" if match[1] == "div" else "inline")
