"""Speed, measured beside rivals in one run."""
