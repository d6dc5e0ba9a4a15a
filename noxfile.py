"""`nox` runs `make test` without the lock, on each Python, with the oldest and the newest jax that are allowed there.

It needs `pip install nox`, and skips a Python that is not installed.
"""

import nox

OLDEST, NEWEST = "0.10.0", "0.11.*"
# jax 0.11 dropped Python 3.11, where 0.10 is the newest.
PAIRS = [("3.11", OLDEST), ("3.11", "0.10.*")] + [
    (python, jax) for python in ("3.12", "3.13", "3.14") for jax in (OLDEST, NEWEST)
]
EXTRAS = "dev,docs,log,notebook,play,plot,sweep"

nox.options.error_on_missing_interpreters = False


@nox.session
@nox.parametrize(("python", "jax"), PAIRS)
def test(session: nox.Session, jax: str) -> None:
    """Lint, types, the site, the default tests and one of the notebooks."""
    session.install("-e", f".[{EXTRAS}]", "hatchling>=1.27", f"jax=={jax}", f"jaxlib=={jax}")
    session.run("make", f"BIN={session.bin}", "INSTALLED=", "test", external=True)
