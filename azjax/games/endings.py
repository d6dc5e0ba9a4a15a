"""The contract of endings: positions with few pieces, which moves can bring back.

Axis letters: `K` slots of the compact table of legal actions.
"""

import abc
from typing import NamedTuple, Protocol, runtime_checkable

from jaxtyping import Array, Bool, Int32, UInt32

from azjax.games.game import S


class EndingsPart(NamedTuple):
    """Consecutive position numbers of endings, all with the same pieces and the same side to move.

    Attributes:
      name: the pieces, as people name them.
      player: to move.
      group: the number of these pieces. Captures lead to lower groups, other moves to the other part of the group.
      first, stop: the numbers are first..stop-1.
      pieces: of the side to move.
      images: the numbers fall into this many equal intervals; how many positions, symmetric to each other, each number
        of an interval stands for.
    """

    name: str
    player: int
    group: int
    first: int
    stop: int
    pieces: int
    images: tuple[int, ...]


@runtime_checkable
class Endings(Protocol[S]):
    """Positions of a game with few pieces, which moves other than captures can bring back, numbered densely.

    Symmetric positions share a number where the game finds one for them cheaply. Hashable by value. They are for
    retrograde analysis, see `azjax/evaluation/retrograde.py`.

    Law: `position_number(from_position_number(number)) == number` for every number of an unfinished position.
    """

    pieces: int
    """What `EndingsGame.endings` was asked for."""

    @property
    @abc.abstractmethod
    def parts(self) -> tuple[EndingsPart, ...]:
        """All numbers, ascending; two parts a group, one for each side to move."""

    @property
    @abc.abstractmethod
    def num_position_numbers(self) -> int:
        """Position numbers are 0..num_position_numbers-1, at most 2^31."""

    @abc.abstractmethod
    def has_values_of(self, other: "Endings[S]") -> bool:
        """Whether every number has the same value in both: games may differ in what plays no part in endings."""

    @abc.abstractmethod
    def position_number(self, state: S) -> UInt32[Array, ""]:
        """The number of an unfinished position; of any other `num_position_numbers`, or a number without a position."""

    @abc.abstractmethod
    def from_position_number(self, number: UInt32[Array, ""]) -> S:
        """The unfinished position of that number; a terminated state where there is none."""

    @abc.abstractmethod
    def as_first_position(self, state: S) -> S:
        """An unfinished state of `from_position_number` or `step` as the first position of a game."""

    @abc.abstractmethod
    def image_numbers(self, number: UInt32[Array, ""]) -> UInt32[Array, "images"]:
        """The numbers of the symmetric images of the position of that number, itself among them."""

    @abc.abstractmethod
    def legal_slots(self, state: S, pieces: int) -> tuple[Int32[Array, "K"], Bool[Array, "K"]]:
        """As `Game.legal_slots`, of a state whose side to move has `pieces`."""

    @abc.abstractmethod
    def step(self, state: S, action: Int32[Array, ""]) -> S:
        """As `Game.step`, without history."""

    @abc.abstractmethod
    def predecessors(self, state: S, pieces: int) -> UInt32[Array, "K"]:
        """The numbers of the positions from which a move without a capture may lead to `state`, among others of the
        group with the other side to move; `num_position_numbers` in holes. That side has `pieces`. Of positions that
        are images of each other, one is enough."""


@runtime_checkable
class EndingsGame(Protocol[S]):
    """A game whose endings are solved by retrograde analysis."""

    @abc.abstractmethod
    def endings(self, pieces: int) -> Endings[S]:
        """Its endings with this many pieces.

        Raises:
          InputError: they are not possible by these rules.
        """
