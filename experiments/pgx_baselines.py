"""How strong does an agent of azjax become at Othello and Hex in half an hour, beside others?

The agent learns with the preset of its game, for a given number of minutes. Then it plays matches; every network in
them searches with PUCT. The opponents are

- a random player;
- an agent of pgx and mctx, which learns as pgx's public AlphaZero example does (`pgx_learner` of self_play_speed.py),
  with the same network and as many positions evaluated in self-play and learning together;
- MCTS of OpenSpiel, with as many random rollouts as take the time of the agent's search;
- pgx's published baseline network, for those who have it and dm-haiku: azjax downloads nothing.

Its checkpoints play against UCT with 1,000 random rollouts: the curve of the training.

    python experiments/pgx_baselines.py [--minutes 30] [--quick]

The same command continues a study that was stopped. It takes about two hours a game with 30 minutes of training. Writes
experiments/results/pgx_baselines.json.
"""

import dataclasses
import importlib.util
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pgx
from rich.console import Console
from rich.progress import track
from rich.table import Table
from self_play_speed import PgxLearner, pgx_learner
from study import RESULTS, RUNS, check_outputs, results_so_far, run_study, seconds_per_iteration, trained, write_results

import azjax
from azjax.core.files import write_atomically
from azjax.evaluation import (
    MatchResult,
    Player,
    act,
    named_player,
    play_match,
    random_player,
    search_player,
)
from azjax.evaluation.host_games import replay
from azjax.evaluation.matches import Contestant
from azjax.evaluation.openspiel import OpenSpielPlayer, OpenSpielSeats
from azjax.games.game import AnyGame
from azjax.networks import Network, NetworkOutput
from azjax.play.ongoing_game import batch_of_one
from azjax.runs import load_variables
from azjax.search import evaluators
from azjax.training import Config

GAMES = ("othello", "hex")
OPENING_PLIES = 2  # random, in every match: players that search repeat one game otherwise
SAVE_EVERY = 10  # iterations of the rival
QUICK = {"width": 8, "depth": 1, "num_games": 8, "num_simulations": 2, "batch_size": 16, "replay_size": 2048}


def main(
    games: tuple[str, ...] = GAMES,
    minutes: float = 30.0,
    num_simulations: int = 64,
    match_games: int = 100,
    yardstick: str = "uct:1000",
    curve_games: int = 40,
    baselines: Path = Path("baselines"),
    quick: bool = False,
    folder: Path | None = None,
    output: Path | None = None,
) -> None:
    """Trains, plays, prints and writes.

    Args:
      games: names of games in pgx that OpenSpiel has too.
      minutes: of training of the agent of azjax.
      num_simulations: simulations of each search in a match.
      match_games: games of each match, an even number.
      yardstick: opponent of the checkpoints.
      curve_games: games of each checkpoint, an even number.
      baselines: folder of pgx's published networks.
      quick: tiny sizes, for a test.
      folder: of the runs; by default runs/pgx_baselines.
      output: file of the results; by default experiments/results/pgx_baselines.json, with `quick` in the folder.
    """
    console = Console()
    folder = folder or RUNS / ("pgx_baselines_quick" if quick else "pgx_baselines")
    output = output or (folder if quick else RESULTS) / "pgx_baselines.json"
    check_outputs(output)
    if quick:
        minutes, num_simulations, match_games, yardstick, curve_games = 0.01, 4, 2, "uct:4", 2
    settings = {
        "minutes": minutes,
        "num_simulations": num_simulations,
        "match_games": match_games,
        "yardstick": yardstick,
        "curve_games": curve_games,
        "quick": quick,
    }
    rows: dict[str, dict[str, Any]] = results_so_far(output, settings, rows={})["rows"]

    def save() -> None:
        write_results(output, "pgx_baselines.py", settings, rows=rows)

    for name in games:
        game, row = azjax.make(f"pgx:{name}"), rows.setdefault(name, {"matches": [], "curve": []})
        config = azjax.preset(game).replace(ladder_every=0, precision="float32")  # as the rival
        config = config.replace(**QUICK) if quick else config
        if "iterations" not in row:
            row["iterations"] = max(1, round(60 * minutes / seconds_per_iteration(game, [config])[0]))
            save()
        config = for_iterations(config, row["iterations"])
        run = trained(game, folder / name, console, config=config)
        row |= {"seconds": run.seconds(config.iterations), "evaluations": evaluations(config) * config.iterations}
        rival_config = as_in_the_example(game, config)
        row["rival_iterations"] = max(1, round(row["evaluations"] / evaluations(rival_config)))
        rival = folder / f"{name}_rival.npz"
        learner, row["rival_seconds"] = train_rival(name, rival_config, row["rival_iterations"], rival, console)
        save()

        network = config.make_network(game)
        row["network"] = str(network)
        steps = sorted({*run.steps[::2], run.steps[-1]})
        for step in track(steps[len(row["curve"]) :], f"curve of {name}", console=console):
            player = searching("azjax", game, network, load_variables(run.folder, step)[1], num_simulations)
            opponent = named_player(yardstick, game)
            match = play_match(game, player, opponent, curve_games, jax.random.key(0), opening_plies=OPENING_PLIES)
            row["curve"].append({"iteration": step, "seconds": run.seconds(step), **match_row(match)})
            save()
        agent = searching("azjax", game, network, load_variables(run.folder)[1], num_simulations)
        opponents: dict[str, Callable[[], Contestant | None]] = {
            "random": lambda: random_player(game),
            "pgx + mctx": lambda: searching("pgx + mctx", game, network, learner.variables, num_simulations),
            "OpenSpiel": lambda: bot_at_equal_time(game, agent),
            "baseline": lambda: baseline(game, name, baselines, num_simulations, console),
        }
        played = {match["kind"] for match in row["matches"]}
        for kind in track([kind for kind in opponents if kind not in played], f"matches of {name}", console=console):
            if (contestant := opponents[kind]()) is not None:
                match = play_match(game, agent, contestant, match_games, jax.random.key(0), opening_plies=OPENING_PLIES)
                row["matches"].append({"kind": kind, **match_row(match)})
                save()
    console.print(table(rows))
    console.print(f"written to {output}", soft_wrap=True)


def match_row(match: MatchResult) -> dict[str, Any]:
    """The result of a match for the agent of azjax."""
    return {
        "rival": match.second,
        "score": round(match.score, 4),
        "interval": [round(end, 4) for end in match.interval],
        "won_drawn_lost": [match.wins, match.draws, match.losses],
        "mean_plies": round(match.mean_length, 1),
    }


def for_iterations(config: Config, iterations: int) -> Config:
    """The configuration of a run of that length."""
    return config.replace(
        iterations=iterations,
        decay_updates=config.updates_per_iteration * iterations,
        checkpoint_every=max(1, iterations // 10),
    )


def evaluations(config: Config) -> int:
    """Positions that the network evaluates in an iteration: in self-play the roots too, and in learning."""
    played = config.num_games * config.steps_per_iteration * (config.num_simulations + 1)
    return played + config.updates_per_iteration * config.batch_size


def as_in_the_example(game: AnyGame, config: Config) -> Config:
    """The configuration of the rival: whole games from their start, and each position is learned from once."""
    plies, games = game.max_plies, config.num_games
    batch_size = min(config.batch_size, games * plies)
    return config.replace(
        steps_per_iteration=plies,
        batch_size=batch_size,
        updates_per_iteration=-(-games * plies // batch_size),
        replay_size=2 * games * plies,
    )


def train_rival(name: str, config: Config, iterations: int, path: Path, console: Console) -> tuple[PgxLearner, float]:
    """The rival after this many iterations, and the seconds that they took. `path` keeps it from time to time."""
    learner, iterate = pgx_learner(name, config)
    leaves, structure = jax.tree.flatten(learner._replace(key=jax.random.key_data(learner.key)))
    names, done, seconds = [str(number) for number in range(len(leaves))], 0, 0.0
    if path.exists():
        with np.load(path) as saved:
            done, seconds = int(saved["done"]), float(saved["seconds"])
            learner = jax.tree.unflatten(structure, [jnp.asarray(saved[leaf]) for leaf in names])
        learner = learner._replace(key=jax.random.wrap_key_data(learner.key))
    for iteration in track(range(done + 1, iterations + 1), f"pgx + mctx on {name}", console=console):
        began = time.perf_counter()
        learner = iterate(learner)
        seconds += time.perf_counter() - began
        if iteration == iterations or iteration % SAVE_EVERY == 0:
            leaves = jax.tree.leaves(learner._replace(key=jax.random.key_data(learner.key)))
            arrays = dict(zip(names, jax.device_get(leaves), strict=True))
            with write_atomically(path) as file:
                np.savez(file, done=iteration, seconds=seconds, **arrays)
    return learner, round(seconds, 1)


def searching(name: str, game: AnyGame, network: Network, variables: Any, num_simulations: int) -> Player:
    """A network with PUCT, as `azjax evaluate` and `azjax play` have it."""
    evaluator = evaluators.network(network, game)
    return search_player(game, evaluator, variables, num_simulations=num_simulations, name=name)


@dataclasses.dataclass(frozen=True, eq=False)
class Baseline:
    """A published network of pgx, as a network of azjax without variables."""

    model: Callable[[jax.Array], tuple[jax.Array, jax.Array]]

    def init(self, key: jax.Array, game: AnyGame) -> dict[str, Any]:
        """It has no variables."""
        del key, game
        return {}

    def apply(self, variables: Any, observations: jax.Array, train: bool) -> tuple[NetworkOutput, Any]:
        """Logits [B, A] and values [B] of the observations [B, ...]."""
        del train
        logits, value = self.model(observations)
        return NetworkOutput(logits, value), variables


def baseline(game: AnyGame, name: str, folder: Path, num_simulations: int, console: Console) -> Player | None:
    """pgx's published network with a search; None, with a line that says why, where it is missing."""
    model_id = f"{name}_v0"
    path = folder / f"{model_id}.ckpt"
    if not path.exists() or importlib.util.find_spec("haiku") is None:
        console.print(
            f"left out, pgx's baseline of {name}: it needs dm-haiku and {path}, which "
            f"pgx.make_baseline_model({model_id!r}, {str(folder)!r}) downloads",
            soft_wrap=True,
        )
        return None
    model = Baseline(pgx.make_baseline_model(model_id, str(folder)))
    return searching("pgx's baseline", game, model, {}, num_simulations)


def bot_at_equal_time(game: AnyGame, agent: Player) -> OpenSpielPlayer:
    """MCTS of OpenSpiel with as many simulations as take the time of the agent's search, one position at a time."""
    random = random_player(game)
    played = play_match(game, random, random, 2, jax.random.key(0)).actions[0]
    states, _ = replay(game, game.init(jax.random.key(0)), [str(action) for action in played])
    probe = OpenSpielPlayer("probe", "mcts", 50)
    seats = OpenSpielSeats(probe, game)
    own, other = [], []
    for ply in range(0, len(played), max(1, len(played) // 16)):
        state = batch_of_one(states[ply])
        jax.block_until_ready(act(agent, jax.random.key(0), state))  # compiles once
        began = time.perf_counter()
        jax.block_until_ready(act(agent, jax.random.key(0), state))
        middle = time.perf_counter()
        seats.choose(jax.random.key(0), state, np.array([0]), [played[:ply]])
        own.append(middle - began)
        other.append(time.perf_counter() - middle)
    simulations = max(1, round(probe.strength * sum(own) / sum(other)))
    return OpenSpielPlayer(f"openspiel:mcts:{simulations}", "mcts", simulations)


def table(rows: dict[str, dict[str, Any]]) -> Table:
    """The results as a table."""
    shown = Table("", "iterations", "against", "score", "95%", "won, drawn, lost")
    for name, row in rows.items():
        for match in row["matches"]:
            low, high = match["interval"]
            counts = ", ".join(map(str, match["won_drawn_lost"]))
            iterations = f"{row['iterations']:,}"
            shown.add_row(name, iterations, match["rival"], f"{match['score']:.1%}", f"{low:.0%} to {high:.0%}", counts)
    return shown


if __name__ == "__main__":
    run_study(main)
