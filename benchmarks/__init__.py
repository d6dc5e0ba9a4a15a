"""Rules and searches in plain Python: rivals of `azjax benchmark` and oracles of the tests. Not part of the wheel."""
