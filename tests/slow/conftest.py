"""What the slow tests share."""

import pytest
from clicking import launch


@pytest.fixture(scope="module")
def browser():
    """Chromium, while the tests of a module run."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = launch(playwright)
        yield found
        found.close()
