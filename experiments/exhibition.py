"""How fast does an agent search in a browser, beside the same search in Python?

Writes the page of `azjax play AGENT --export` for each agent that comes with azjax, and lets its engine search from the
start in Node, whose V8 is the one of Chromium. The search of Python is the same one: one position, chunks of 16
simulations, compiled for this machine. Both run one after the other; a chunk counts with the median of ten.

    python experiments/exhibition.py [AGENT ...]

It takes some minutes on 2 CPU cores, and needs node. Writes experiments/results/exhibition.json.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import jax
import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table
from study import RESULTS, refuse_unknown, run_study, write_results

from azjax.agents import SearchSpec, game_of, load_search_spec
from azjax.packaged import packaged
from azjax.play.exhibition import CHUNK, MAX_SIMULATIONS, export_page, to_play_alone
from azjax.play.search_pool import SearchPool
from azjax.play.session import PlaySession

CHUNKS = 12  # the first two are not counted
assert CHUNKS * CHUNK <= MAX_SIMULATIONS

SCRIPT = """
const fs = require("fs"), folder = process.argv[1], read = name => fs.readFileSync(`${folder}/${name}`);
globalThis.fetch = async name => ({ok: true, json: async () => JSON.parse(read(name)), arrayBuffer: async () => new Uint8Array(read(name)).buffer});
globalThis.postMessage = () => {};
const began = performance.now();
new Function(`${read("engine.js")}; globalThis.opened = opened; globalThis.timed = chunks => {
  const {state} = positions.get(""), seconds = [];
  let tree = run.empty(state);
  for (let chunk = 0; chunk < chunks; chunk += 1) {
    const start = performance.now();
    [, , , , ...tree] = run.search(Uint32Array.of(0, chunk), state, tree);
    seconds.push((performance.now() - start) / 1000);
  }
  return seconds;
};`)();
opened.then(() => console.log(JSON.stringify({opened: (performance.now() - began) / 1000, chunks: timed(Number(process.argv[2]))})));
"""  # noqa: E501


def main(agents: tyro.conf.Positional[tuple[str, ...]] = (), output: Path = RESULTS / "exhibition.json") -> None:
    """Writes the pages, measures, prints and writes.

    Args:
      agents: names of agents that come with azjax; all by default.
      output: file of the results.
    """
    console = Console()
    refuse_unknown(agents, packaged())
    rows = [measured(name) for name in track(agents or packaged(), "agents", console=console)]
    table = Table("agent", "files", "opens in", "in Node", "in Python", "ratio")
    for row in rows:
        times = row["milliseconds"], row["milliseconds_in_python"]
        table.add_row(
            row["agent"],
            f"{row['bytes'] / 1e6:.1f} MB",
            f"{row['opened']:.1f} s",
            *(f"{milliseconds:.2f} ms" for milliseconds in times),
            f"{times[0] / times[1]:.1f}",
        )
    console.print(table)
    write_results(output, "exhibition.py", {"chunk": CHUNK, "chunks": CHUNKS, "node": version()}, rows=rows)
    console.print(f"written to {output}")


def measured(name: str) -> dict[str, Any]:
    """The size of the page of an agent, and milliseconds of a simulation on it and in Python."""
    game = game_of(name)
    assert game is not None
    search = load_search_spec(name, game)
    session = PlaySession(game, name, SearchPool(search.policy, search.params, search.hyper), {})
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "page"
        for _ in export_page(session, search, folder):
            pass
        size = sum(path.stat().st_size for path in folder.iterdir())
        ended = subprocess.run(["node", "-e", SCRIPT, "--", str(folder), str(CHUNKS)], capture_output=True, text=True)
    if ended.returncode:
        sys.exit(ended.stderr)
    in_node = json.loads(ended.stdout)
    return {
        "agent": name,
        "bytes": size,
        "opened": round(in_node["opened"], 2),
        "milliseconds": milliseconds(in_node["chunks"]),
        "milliseconds_in_python": milliseconds(seconds_in_python(search)),
    }


def seconds_in_python(search: SearchSpec) -> list[float]:
    """Of each chunk of a search from the start."""
    policy = to_play_alone(search.policy)
    start = jax.tree.map(lambda leaf: np.asarray(leaf)[None], policy.game.init(jax.random.key(0)))
    run = jax.jit(lambda key, tree: policy(search.params, key, start, hyper=search.hyper, tree=tree).tree)
    tree = jax.jit(lambda: policy.empty_tree(search.params, start, hyper=search.hyper))()
    seconds = []
    for chunk in range(CHUNKS):
        began = time.perf_counter()
        tree = jax.block_until_ready(run(jax.random.key(chunk), tree))
        seconds.append(time.perf_counter() - began)
    return seconds


def milliseconds(chunks: list[float]) -> float:
    """Of a simulation."""
    return round(1000 * float(np.median(chunks[2:])) / CHUNK, 3)


def version() -> str:
    """That of Node."""
    return subprocess.run(["node", "--version"], capture_output=True, text=True, check=True).stdout.strip()


if __name__ == "__main__":
    run_study(main)
