"""Pages from templates, by Jinja (the extra `plot`)."""

import importlib.resources
import importlib.util
from typing import Any

from azjax.core.errors import InputError


def needs_report_packages() -> None:
    """Checks, before a long work, that pages can be written.

    Raises:
      InputError: Matplotlib or Jinja is not installed.
    """
    if missing := [name for name in ("jinja2", "matplotlib") if importlib.util.find_spec(name) is None]:
        raise InputError(f"a report needs {' and '.join(missing)}: pip install 'azjax[plot]'")


def render(template: str, content: dict[str, Any], package: str = __package__) -> str:
    """The text of a page. Its content is escaped, in Markdown too; HTML pages have the style of all pages as `style`.

    Args:
      template: the name of a file, such as `report.html.jinja`.
      content: what the template reads.
      package: whose folder has the template.

    Raises:
      InputError: Matplotlib or Jinja is not installed.
    """
    needs_report_packages()
    import jinja2

    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    page: str = environment.from_string(_read(template, package)).render(
        **content, style=_read("style.css", "azjax.report")
    )
    return page


def _read(name: str, package: str) -> str:
    return importlib.resources.files(package).joinpath(name).read_text(encoding="utf-8")
