"""Rules of Santorini in plain Python on lists of squares.

Squares are (row, column), row 0 at the top. Actions are numbered as in `azjax`.
"""

import dataclasses
import functools
import itertools
import random

Square = tuple[int, int]
DIRECTIONS = [(-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1)]
# The workers of player 0, then of player 1.
STARTS: dict[tuple[int, int], tuple[list[Square], list[Square]]] = {
    (2, 1): ([(0, 0)], [(1, 1)]),
    (3, 1): ([(0, 0)], [(2, 2)]),
    (3, 2): ([(0, 0), (0, 2)], [(2, 0), (2, 2)]),
    (4, 1): ([(0, 0)], [(3, 3)]),
    (4, 2): ([(0, 0), (0, 3)], [(3, 0), (3, 3)]),
    (5, 1): ([(1, 1)], [(3, 3)]),
    (5, 2): ([(1, 1), (1, 3)], [(3, 1), (3, 3)]),
}


@dataclasses.dataclass(frozen=True)
class Position:
    """A position.

    Attributes:
      heights: height of each square, row-major; 4 is a dome.
      workers: squares of the workers of player 0 and of player 1, in row-major order.
      player: the player to move, 0 or 1; after the end of the game the player who would move next.
      terminal: the game is over.
      rewards: rewards of the last step, by player.
    """

    heights: tuple[int, ...]
    workers: tuple[tuple[Square, ...], tuple[Square, ...]]
    player: int = 0
    terminal: bool = False
    rewards: tuple[float, float] = (0.0, 0.0)


@dataclasses.dataclass(frozen=True)
class SantoriniRules:
    """A size x size board with `workers` for each side, on their start squares or placed by the players."""

    size: int
    workers: int
    placement: bool = False

    @functools.cached_property
    def squares(self) -> list[Square]:
        return list(itertools.product(range(self.size), repeat=2))

    def start(self) -> Position:
        first, second = ([], []) if self.placement else STARTS[self.size, self.workers]
        return Position((0,) * self.size**2, (tuple(first), tuple(second)))

    def height(self, position: Position, square: Square) -> int:
        return position.heights[square[0] * self.size + square[1]]

    def placing(self, position: Position) -> bool:
        return len(position.workers[position.player]) < self.workers

    def neighbour(self, square: Square, direction: int) -> Square | None:
        """The next square in a direction; None beyond the edge."""
        row, column = square[0] + DIRECTIONS[direction][0], square[1] + DIRECTIONS[direction][1]
        return (row, column) if 0 <= row < self.size and 0 <= column < self.size else None

    @functools.cached_property
    def neighbours(self) -> dict[Square, list[tuple[int, Square, int]]]:
        """For each square: direction, square and row-major index of its neighbors, ascending by direction."""
        found = {}
        for square in self.squares:
            around = [(direction, self.neighbour(square, direction)) for direction in range(8)]
            found[square] = [(direction, near, near[0] * self.size + near[1]) for direction, near in around if near]
        return found

    def legal_actions(self, position: Position) -> list[int]:
        """The legal actions, ascending."""
        if position.terminal:
            return []
        occupied = {*position.workers[0], *position.workers[1]}
        if self.placing(position):
            return [64 * self.workers + i for i, square in enumerate(self.squares) if square not in occupied]
        actions, heights, neighbours = [], position.heights, self.neighbours
        for worker, start in enumerate(position.workers[position.player]):
            highest = min(3, self.height(position, start) + 1)
            for move, target, index in neighbours[start]:
                if target in occupied or heights[index] > highest:
                    continue
                first = worker * 64 + move * 8
                for build, block, built in neighbours[target]:
                    if heights[built] < 4 and (block not in occupied or block == start):
                        actions.append(first + build)
        return actions

    def is_legal(self, position: Position, action: int) -> bool:
        """Whether the action is legal; faster than making the list of `legal_actions`."""
        if position.terminal or action < 0:
            return False
        occupied = {*position.workers[0], *position.workers[1]}
        if self.placing(position):
            square = action - 64 * self.workers
            return 0 <= square < len(self.squares) and self.squares[square] not in occupied
        workers = position.workers[position.player]
        if action >= 64 * len(workers):
            return False
        start = workers[action // 64]
        target = self.neighbour(start, action // 8 % 8)
        if target is None or target in occupied:
            return False
        if self.height(position, target) > min(3, self.height(position, start) + 1):
            return False
        block = self.neighbour(target, action % 8)
        return block is not None and self.height(position, block) < 4 and (block == start or block not in occupied)

    def step(self, position: Position, action: int) -> Position:
        if not self.is_legal(position, action):
            return dataclasses.replace(position, rewards=(0.0, 0.0))
        player, workers = position.player, [list(side) for side in position.workers]
        if self.placing(position):
            workers[player] = sorted([*workers[player], self.squares[action - 64 * self.workers]])
            following = player if len(workers[player]) < self.workers else 1 - player
            return Position(position.heights, (tuple(workers[0]), tuple(workers[1])), following)
        start, target, block = self.move(position, action)
        heights = list(position.heights)
        heights[block[0] * self.size + block[1]] += 1
        workers[player] = sorted([target, *(square for square in workers[player] if square != start)])
        after = Position(tuple(heights), (tuple(workers[0]), tuple(workers[1])), 1 - player)
        if self.height(position, target) == 3 or not self.can_move(after):
            rewards = (1.0, -1.0) if player == 0 else (-1.0, 1.0)
            return dataclasses.replace(after, terminal=True, rewards=rewards)
        return after

    def can_move(self, position: Position) -> bool:
        """Whether the player to move has an action. A move is enough: its worker can build where it came from."""
        occupied = {*position.workers[0], *position.workers[1]}
        return any(
            target not in occupied and position.heights[index] <= min(3, self.height(position, start) + 1)
            for start in position.workers[position.player]
            for _, target, index in self.neighbours[start]
        )

    def move(self, position: Position, action: int) -> tuple[Square, Square, Square]:
        """The start square, the target square and the square built on."""
        start = position.workers[position.player][action // 64]
        target = self.neighbour(start, action // 8 % 8)
        assert target is not None
        block = self.neighbour(target, action % 8)
        assert block is not None
        return start, target, block

    def text(self, position: Position) -> str:
        sides = [position.workers[position.player], position.workers[1 - position.player]]
        pairs = [[f"{row}{column}" for row, column in side] + ["--"] * (self.workers - len(side)) for side in sides]
        return "".join(map(str, position.heights)) + "".join(pairs[0] + pairs[1])

    def action_text(self, position: Position, action: int) -> str:
        def name(square: Square) -> str:
            return "abcde"[square[1]] + str(self.size - square[0])

        if self.placing(position):
            return name(self.squares[action - 64 * self.workers])
        start, target, block = map(name, self.move(position, action))
        return f"{start}-{target}^{block}"

    def planes(self, position: Position) -> list[list[list[float]]]:
        """The observation [row][column][plane]: own workers, workers of the opponent, heights 0 to 4."""
        own, other = position.workers[position.player], position.workers[1 - position.player]
        rows = []
        for row in range(self.size):
            cells = []
            for column in range(self.size):
                square = (row, column)
                heights = [float(self.height(position, square) == height) for height in range(5)]
                cells.append([float(square in own), float(square in other), *heights])
            rows.append(cells)
        return rows

    def random_game(self, generator: random.Random) -> list[tuple[Position, int]]:
        """Pairs (position, action) of every ply of a game, and the final position with action -1."""
        position, plies = self.start(), []
        while not position.terminal:
            action = generator.choice(self.legal_actions(position))
            plies.append((position, action))
            position = self.step(position, action)
        return [*plies, (position, -1)]

    def random_setup(self, generator: random.Random) -> Position:
        """A position with random heights and all workers placed, the side to move not on height 3."""
        while True:
            top = generator.choice([1, 2, 3, 4, 4])
            heights = tuple(generator.randint(0, top) for _ in self.squares)
            free = [square for square, height in zip(self.squares, heights, strict=True) if height < 4]
            if len(free) < 2 * self.workers:
                continue
            chosen = generator.sample(free, 2 * self.workers)
            sides = (tuple(sorted(chosen[: self.workers])), tuple(sorted(chosen[self.workers :])))
            position = Position(heights, sides, sum(heights) % 2)
            last = 1 - position.player
            own_heights = [self.height(position, square) for square in position.workers[position.player]]
            other_heights = [self.height(position, square) for square in position.workers[last]]
            if 3 in own_heights or other_heights.count(3) > 1:
                continue
            if 3 in other_heights or not self.legal_actions(position):
                return dataclasses.replace(position, terminal=True, rewards=(1.0 - 2 * last, 2.0 * last - 1))
            return position
