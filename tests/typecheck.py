"""How the tests check the types and shapes of the package at run time."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
"""beartype, with an int where a float is expected, as PEP 484 has it."""
