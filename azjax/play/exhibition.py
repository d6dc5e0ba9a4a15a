"""The page as a folder of files that any web server can show: the agent plays in the browser, without Python.

Rules, network and search are programs of JAX that `page/stablehlo.js` runs; none of them is written again. Pictures are
put together square by square from parts of the game's own pictures, and moves are written by patterns of its own
notation. Axis letters: `A` actions.
"""

import collections
import dataclasses
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from xml.dom import minidom

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float32, Int32, PyTree, UInt32

from azjax.agents import LEVELS, TEMPERATURES, SearchSpec
from azjax.core.errors import FileError, InputError
from azjax.core.files import write_atomically
from azjax.core.pytree import replace_fields
from azjax.export.positions import in_float32
from azjax.export.program import to_program
from azjax.games.game import AnyGame, State
from azjax.games.pictures import has_picture
from azjax.games.protocols import CellGame, TextGame, player_names, square_name
from azjax.play.page_source import SCRIPTS, page_source, script
from azjax.play.session import Json, PlaySession
from azjax.render.drawing import LAYERS
from azjax.render.picture import svg
from azjax.search import SearchPolicy, SearchResult, Tree
from azjax.search.evaluators import NetworkEvaluator

FILES = ("index.html", "engine.js", "exhibition.json", "weights.bin")
MAX_SIMULATIONS = 1024
CHUNK = 16  # simulations between two looks at the questions of the page
_GAMES, _SEED = 64, 0  # of random moves, in which the notation is read

Elements: TypeAlias = collections.Counter[tuple[str, str]]
"""Elements of a picture: their layer, and themselves as text."""


def export_page(session: PlaySession, search: SearchSpec, folder: Path) -> Iterator[str]:
    """Writes the page; yields what it does next.

    Args:
      session: describes the game and the agent. Its pool need not be started.
      search: the search of the agent, with a network.
      folder: the new folder.

    Raises:
      InputError: the folder exists, the game is no `CellGame`, something of it cannot be a program, or there are more
        simulations than `MAX_SIMULATIONS`.
      FileError: a file cannot be written; none is left.
    """
    game = session.game
    if folder.exists():
        raise InputError(f"{folder} exists already; name another folder with --export")
    if session.num_simulations > MAX_SIMULATIONS:
        raise InputError(
            f"a page without a server has at most {MAX_SIMULATIONS:,} simulations, got {session.num_simulations:,}"
        )
    if not (isinstance(game, CellGame) and isinstance(game, TextGame) and has_picture(game)):
        raise InputError(f"{game.name} cannot be played without Python: it lacks a text, cells or a picture")
    try:
        folder.mkdir(parents=True)
    except OSError as error:
        raise FileError(f"{folder} could not be made: {error.strerror or error}") from error
    try:
        yield from _write(session, search, folder)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def _write(session: PlaySession, search: SearchSpec, folder: Path) -> Iterator[str]:
    game = session.game
    yield "the rules"
    weights = _Weights()
    start = game.init(jax.random.key(0))
    files: Json = {"start": weights.add(start), "rules": _rules(game, start)}
    yield "the search"
    files["search"] = _search(search, start, weights)
    yield "the pictures"
    files["look"] = Look(game, start).as_json()
    files["notation"] = notation(game)
    files["game"], files["players"], files["temperatures"] = game.name, player_names(game), TEMPERATURES
    files |= {"weights": weights.entries, "chunk": CHUNK}
    about = {**session.describe(), "static": True, "most": MAX_SIMULATIONS, "pieces": ()}
    about["levels"] = [*LEVELS[:-1], "search"]
    yield "the files"
    first = {"game": about, "position": session.position({})}
    contents = (
        page_source(first, (SCRIPTS[0], "exhibition.js", *SCRIPTS[1:])).encode(),
        script(("stablehlo.js", "engine.js")).encode(),
        json.dumps(files, separators=(",", ":")).encode(),
        weights.content(),
    )
    for name, content in zip(FILES, contents, strict=True):
        with write_atomically(folder / name) as file:
            file.write(content)


class _Weights:
    """The arrays that programs are given, one after another in one file, in bfloat16 where this loses nothing."""

    def __init__(self) -> None:
        self.entries: list[Json] = []
        self._arrays: list[np.ndarray] = []

    def add(self, tree: PyTree) -> list[int]:
        """Adds the leaves of a tree, and returns their numbers."""
        numbers = []
        for leaf in jax.tree.leaves(tree):
            array = np.asarray(leaf)
            kind = {"float32": "f32", "bool": "i1"}.get(str(array.dtype), str(array.dtype))
            if array.dtype == np.float32 and not (np.ascontiguousarray(array).view(np.uint32) & 0xFFFF).any():
                array, kind = (np.ascontiguousarray(array).view(np.uint32) >> 16).astype(np.uint16), "bf16"
            numbers.append(len(self.entries))
            self.entries.append({"type": kind, "size": array.size})
            self._arrays.append(array)
        return numbers

    def content(self) -> bytes:
        """The file. Each array begins at a multiple of 4 bytes."""
        return b"".join(data + b"\0" * (-len(data) % 4) for data in map(np.ndarray.tobytes, self._arrays))


def _rules(game: Any, start: State) -> Json:
    """`look` at a position, and `step` to the next one."""

    def look(state: State) -> tuple[Array, ...]:
        mask = game.legal_action_mask(state)
        squares, cells = game.squares_of_actions(state), game.cells(state)
        return mask, squares, cells, state.current_player, state.terminated, state.rewards

    return {"look": to_program(look, start), "step": to_program(game.step, start, jnp.int32(0))}


def _search(search: SearchSpec, start: State, weights: _Weights) -> Json:
    """The network alone (`network`), the `empty` tree of a position, and `search`, which goes on with a tree."""
    policy = to_play_alone(search.policy)
    game, variables, net = policy.game, search.params, policy.evaluator.net

    def network(params: PyTree, state: State) -> tuple[Float32[Array, "A"], Float32[Array, ""]]:
        output, _ = net.apply(params, game.observe(state)[None], train=False)
        mask = game.legal_action_mask(state)
        policy = jax.nn.softmax(jnp.where(mask, output.prior_logits[0], -jnp.inf))
        return jnp.where(mask, policy, 0.0), output.value[0]

    def empty(state: State) -> Tree:
        tree: Tree = policy.empty_tree(variables, _batch(state), hyper=search.hyper)
        return tree

    def go_on(params: PyTree, key: UInt32[Array, "2"], state: State, tree: Tree) -> tuple[PyTree, ...]:
        keys = jax.random.wrap_key_data(key)
        result: SearchResult = policy(params, keys, _batch(state), hyper=search.hyper, tree=tree)
        action: Int32[Array, ""] = result.action[0]
        return action, result.policy[0], result.value[0], result.bounds[0], result.tree.without_histories()

    tree = jax.eval_shape(lambda state: empty(state).without_histories(), start)
    return {
        "params": weights.add(variables),
        "network": to_program(network, variables, start),
        "empty": to_program(lambda state: empty(state).without_histories(), start),
        "search": to_program(go_on, variables, jnp.zeros(2, jnp.uint32), start, tree),
    }


def to_play_alone(policy: SearchPolicy) -> Any:
    """The search in chunks, with its network in float32.

    Raises:
      InputError: it has no network, or more than that.
    """
    if not isinstance(policy.evaluator, NetworkEvaluator):
        raise InputError("the page without Python is for agents with a network, without --tables")
    trained: Any = policy.evaluator.net
    evaluator = dataclasses.replace(policy.evaluator, net=in_float32(trained))
    capacity = MAX_SIMULATIONS + CHUNK
    return dataclasses.replace(policy, evaluator=evaluator, num_simulations=CHUNK, max_nodes=capacity, solver=True)


def _batch(state: State) -> State:
    batch: State = jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], state)
    return batch


class Look:
    """The picture of a game by cells: what every picture has, and what each number adds on each square.

    It is found by placing pieces on an empty board, one or two on a square, and comparing the pictures.
    """

    def __init__(self, game: Any, start: State) -> None:
        self._game, self._cells_of = game, jax.jit(game.cells)
        self._board = _emptied(game, start)
        self._cells = np.asarray(self._cells_of(self._board))
        self._head, self._common, self._caption = elements_of(game, self._board)
        self._added: list[dict[int, Elements]] = [{} for _ in self._cells]
        self._removed: list[dict[int, Elements]] = [{} for _ in self._cells]
        has_pairs = True
        for square in range(len(self._cells)):
            once = [self._board, *self._with_pieces(self._board, square)]
            self._compare(square, once)
            if has_pairs:
                found = len(self._added[square])
                self._compare(square, [other for state in once for other in self._with_pieces(state, square)])
                has_pairs = len(self._added[square]) > found

    def _with_pieces(self, state: State, square: int) -> list[State]:
        """The position with each of the pieces on a square."""
        return [self._game.with_piece(state, square, piece) for piece in range(len(self._game.piece_names))]

    def _compare(self, square: int, states: list[State]) -> None:
        """Finds what the numbers on a square look like in positions that differ from the board on it alone."""
        for state in states:
            cells = np.asarray(self._cells_of(state))
            number = int(cells[square])
            if number in self._added[square] or (np.delete(cells, square) != np.delete(self._cells, square)).any():
                continue
            _, elements, _ = elements_of(self._game, state)
            self._added[square][number] = elements - self._common
            self._removed[square][number] = self._common - elements

    def as_json(self) -> Json:
        """`head` and `caption` as text, `common` by layer, and `cells`: by square and number, also by layer."""
        own = [_union(removed.values()) for removed in self._removed]  # what only some numbers of a square have
        cells = [
            {number: _by_layer(added[number] + (own[square] - removed[number])) for number in added}
            for square, (added, removed) in enumerate(zip(self._added, self._removed, strict=True))
        ]
        common = self._common
        for elements in own:
            common = common - elements
        rows, columns = self._game.observation_shape[:2]
        across, down = re.findall(r'data-down="(\S+) (\S+)"', self._head)[0]
        board = {"rows": rows, "columns": columns, "rows_from_top": self._game.rows_from_top}
        board["down"] = [float(across), float(down)]
        return {"head": self._head, "caption": self._caption, "common": _by_layer(common), "cells": cells, **board}


def _emptied(game: Any, start: State) -> State:
    """The start without pieces: on every square, what makes the picture shortest."""
    board = start
    for square in range(int(np.prod(game.observation_shape[:2]))):
        before = None
        while board is not before:
            boards = [game.with_piece(board, square, piece) for piece in range(len(game.piece_names))]
            before, board = board, min([board, *boards], key=lambda state: len(svg(game, state)))
    return board


def elements_of(game: AnyGame, state: State) -> tuple[str, Elements, str]:
    """A picture: what comes before the layers, the elements, and the line below the board."""
    document: Any = minidom.parseString(svg(game, replace_fields(state, terminated=np.bool_(False)))).documentElement
    head, elements, caption = [], Elements(), ""
    for part in document.childNodes:
        layer = part.getAttribute("class") if part.tagName == "g" else ""
        if layer not in LAYERS:
            head += [part.toxml()] * (part.tagName != "title")
            continue
        for element in part.childNodes:
            if element.hasAttribute("xml:space"):
                caption = element.toxml()
            else:
                elements[layer, element.toxml()] += 1
    document.removeAttribute("aria-label")
    tag = document.cloneNode(False).toxml().removesuffix("/>") + ">"
    mover = int(state.current_player)
    name = player_names(game)[mover]
    caption = caption.replace(f"{name[0].upper()}{name[1:]} to move", "{{status}}")
    return tag + "".join(head), elements, caption.replace(f"--{('first', 'second')[mover]}", "--{{color}}")


def _union(sets: Sequence[Elements] | Any) -> Elements:
    union = Elements()
    for each in sets:
        union |= each
    return union


def _by_layer(elements: Elements) -> Mapping[str, str]:
    layers: dict[str, str] = {}
    for (layer, element), count in elements.items():
        layers[layer] = layers.get(layer, "") + element * count
    return layers


def notation(game: Any) -> list[str]:
    """The pattern of each action: its text with {0}, {1}, ... for the names of its squares.

    Patterns are read from the legal moves of random games. An action that they lack gets the pattern of most others.

    Raises:
      InputError: an action is not always written in the same way.
    """
    rows, columns = game.observation_shape[:2]
    names = [
        square_name(rows, row, column, from_top=game.rows_from_top) for row in range(rows) for column in range(columns)
    ]
    patterns: dict[int, str] = {}
    find_squares = jax.jit(game.squares_of_actions)
    for state, actions in _random_positions(game):
        found = np.asarray(find_squares(state)).tolist()
        for action in actions:
            squares = [square for square in found[action] if square >= 0]
            text = game.action_to_text(state, action)
            for place, square in enumerate(squares):
                text = re.sub(rf"(?<![a-z\d{{]){names[square]}(?!\d)", f"{{{place}}}", text, count=1)
            if patterns.setdefault(action, text) != text:
                raise InputError(
                    f"{game.name}: action {action} is written in several ways, as {text} and {patterns[action]}"
                )
    usual = collections.Counter(patterns.values()).most_common(1)[0][0]
    return [patterns.get(action, usual) for action in range(game.num_actions)]


def _random_positions(game: AnyGame) -> Iterator[tuple[State, list[int]]]:
    """Unfinished positions of random games, and their legal actions."""
    rng, step = np.random.default_rng(_SEED), jax.jit(game.step)
    mask = jax.jit(game.legal_action_mask)
    for _ in range(_GAMES):
        state = game.init(jax.random.key(0))
        while not state.terminated:
            actions = np.flatnonzero(mask(state))
            yield jax.tree.map(np.asarray, state), actions.tolist()
            state = step(state, jnp.int32(rng.choice(actions)))
