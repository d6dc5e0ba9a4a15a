"""Which options of a search make a packaged agent stronger at play, in equal time?

The base searches one position at a time as in play: with as many leaves per step as `azjax.evaluation.for_one_position`
takes. Against it play the same search with the solver, with the tree below the moves that are played (`--reuse-tree`),
and with both. The seconds of a move are measured first, in games of each player with itself, in turn with the base;
then a variant gets as many simulations as take the time of the base. Last, two searches for a time, one of which keeps
its tree, have the same seconds. Matches are played from balanced openings, each from both sides, and those with
simulations with many games side by side, which changes no move.

    python experiments/at_play.py

Rows that the result file has are not made again. Writes experiments/results/at_play.json.
"""

import statistics
import time
from pathlib import Path
from typing import Any

import jax
from rich.console import Console
from rich.table import Table
from study import RESULTS, agent_digest, refuse_another_agent, refuse_unknown, results_so_far, run_study, write_results

from azjax.evaluation import Player, play_match, search_player
from azjax.evaluation.matches import Contestant
from azjax.evaluation.players import act, observe, start_memory
from azjax.evaluation.timed import TimedPlayer
from azjax.packaged import Agent, load_agent, packaged

FOR_A_TIME = "reused tree, for a time"
VARIANTS = {
    "solver": {"solver": True},
    "reused tree": {"reuse_tree": True},
    "both": {"solver": True, "reuse_tree": True},
    FOR_A_TIME: {"reuse_tree": True},
}
AGENTS = ("connect_four", "brandub", "santorini_5x5")
LEAVES = 4  # of a step: what `for_one_position` takes for 400 simulations
OPENING_PLIES, BALANCE = 4, 0.3
TIMED_PLIES, ROUNDS = 10, 9

Row = dict[str, Any]


def main(
    agents: tuple[str, ...] = AGENTS,
    num_simulations: int = 400,
    games: int = 400,
    seconds: float = 0.1,
    seed: int = 0,
    output: Path = RESULTS / "at_play.json",
) -> None:
    """Times, plays, prints and writes.

    Args:
      agents: names of packaged agents.
      num_simulations: of the base.
      games: of each match, an even number.
      seconds: of a move of the searches for a time.
      seed: of the matches.
      output: file of the results.
    """
    console = Console()
    refuse_unknown("agent", agents, packaged())
    settings = {"num_simulations": num_simulations, "games": games, "seed": seed, "leaves_per_step": LEAVES}
    settings |= {"seconds": seconds, "opening_plies": OPENING_PLIES, "balance": BALANCE}
    rows: list[Row] = results_so_far(output, settings, rows=[])["rows"]
    for name in agents:
        refuse_another_agent(output, rows, name)
    done = {(row["agent"], row["variant"]) for row in rows}
    for name in agents:
        agent = load_agent(name)
        base = player(agent, num_simulations, "base", {})
        for variant, options in VARIANTS.items():
            if (name, variant) in done:
                continue
            first: Contestant
            second: Contestant
            if variant == FOR_A_TIME:
                ratio, count, leaves = 1.0, None, 1  # the search chooses the leaves of a step by its seconds
                first = TimedPlayer(variant, player(agent, leaves, variant, options, leaves), seconds)
                second = TimedPlayer("base", player(agent, leaves, "base", {}, leaves), seconds)
            else:
                with console.status(f"{name}: timing the {variant}"):
                    ratio = seconds_beside(agent, player(agent, num_simulations, variant, options), base)
                count = max(LEAVES, round(num_simulations / ratio / LEAVES) * LEAVES)
                first, second = player(agent, count, variant, options), base
            with console.status(f"{name}: {games} games of {variant}"):
                match = play_match(
                    agent.game,
                    first,
                    second,
                    games,
                    jax.random.key(seed),
                    opening_plies=OPENING_PLIES,
                    judge=base,
                    balance=BALANCE,
                )
            row: Row = {"agent": name, "agent_digest": agent_digest(name), "variant": variant}
            row |= {"seconds_beside_base": round(ratio, 3), "num_simulations": count}
            counts = [match.total.wins, match.total.draws, match.total.losses]
            interval = [round(end, 4) for end in match.interval]
            row |= {"score": round(match.score, 4), "interval": interval, "won_drawn_lost": counts}
            rows.append(row)
            console.print(row)
            write_results(output, "at_play.py", settings, rows=rows)
    console.print(table(rows))
    console.print(f"written to {output}", soft_wrap=True)


def player(agent: Agent, num_simulations: int, name: str, options: dict[str, bool], leaves: int = LEAVES) -> Player:
    """The agent with a search."""
    return search_player(
        agent.game,
        agent.evaluator,
        agent.variables,
        num_simulations=num_simulations,
        c_puct=agent.hyper.c_puct,
        leaves_per_step=leaves,
        name=name,
        **options,
    )


def seconds_beside(agent: Agent, variant: Player, base: Player) -> float:
    """The seconds of a move of the variant, in those of the base: means over the first moves of some games.

    The time of a kept tree, which follows the moves of both sides, counts.
    """
    seconds: dict[str, list[float]] = {each.name: [] for each in (variant, base)}
    for number in range(ROUNDS + 1):
        for each in (variant, base):
            states = jax.vmap(agent.game.init)(jax.random.split(jax.random.key(number), 1))
            memory = start_memory(each, states)
            for ply in range(TIMED_PLIES):
                began = time.perf_counter()
                action, _, memory = act(each, jax.random.key(ply), states, memory)
                jax.block_until_ready((action, memory := observe(each, memory, action)))
                if number:  # the first round compiles
                    seconds[each.name].append(time.perf_counter() - began)
                states = jax.vmap(agent.game.step)(states, action)
    return statistics.mean(seconds[variant.name]) / statistics.mean(seconds[base.name])


def table(rows: list[Row]) -> Table:
    """The results as a table."""
    shown = Table("agent", "variant", "seconds of a move, base = 1", "simulations", "points", "95%")
    for row in rows:
        low, high = row["interval"]
        shown.add_row(
            row["agent"],
            row["variant"],
            f"{row['seconds_beside_base']:.2f}",
            str(row["num_simulations"] or ""),
            f"{row['score']:.1%}",
            f"{low:.1%} to {high:.1%}",
        )
    return shown


if __name__ == "__main__":
    run_study(main)
