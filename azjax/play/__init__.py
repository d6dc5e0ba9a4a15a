"""Games against agents: in the terminal, on a page, and as engines of other programs."""

from azjax.play.terminal import play_in_terminal

__all__ = ["play_in_terminal"]
