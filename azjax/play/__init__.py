"""Where people and programs meet agents."""

from azjax.play.terminal import play_in_terminal

__all__ = ["play_in_terminal"]
