"""An external program for tests: it answers positions of Santorini in the protocol of santorini-ai, from a file.

    python santorini_engine.py ANSWERS LOG

ANSWERS has the next position of each, as JSON. Other positions get none.
"""

import json
import sys
from pathlib import Path


def send(start: str, following: str, trigger: str) -> None:
    message = {"type": "best_move", "start_state": start, "next_state": following, "trigger": trigger, "meta": {}}
    print(json.dumps(message), flush=True)


def main() -> None:
    answers, log = json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2])
    print(json.dumps({"type": "started"}), flush=True)
    position = ""
    for line in sys.stdin:
        with log.open("a") as file:
            file.write(line)
        command, *words = line.split()
        if command == "ping":
            print("pong", flush=True)
        elif command == "quit":
            return
        elif command == "set_position":
            before, position = position, words[0]
            print("[" * 50_000, flush=True)  # JSON, nested too deeply
            send(before, "a late answer for the position before", "stop_flag")
            if position in answers:
                send(position, "not yet a good one", "improvement")
                send(position, answers[position], "improvement")
        elif command == "stop" and position in answers:
            send(position, answers[position], "stop_flag")


main()
