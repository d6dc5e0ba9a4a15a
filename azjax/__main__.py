"""`python -m azjax`: the command line."""

from azjax.cli import main

main()
