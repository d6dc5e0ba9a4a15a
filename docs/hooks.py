"""MkDocs hooks: formulas, and the agent that plays on the site.

Formulas become MathML, which browsers show without a script.
"""

import contextlib
import html
import io
import re
import shutil
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert

from azjax.commands.play import play_command


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
