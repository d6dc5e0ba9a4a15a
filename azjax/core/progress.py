"""What all lines share that tell how far long work is."""

SECONDS_BETWEEN_LINES = 30.0


def duration(seconds: float) -> str:
    """Such as `0.6 s`, `40 s`, `25 min` or `3.1 h`."""
    if 0.05 <= seconds < 9.95:
        return f"{seconds:.1f} s"
    if seconds < 99.5:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
