"""Tree searches in plain Python."""
