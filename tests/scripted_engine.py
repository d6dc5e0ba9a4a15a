"""An external program for tests: it plays tic-tac-toe by gtp or line, or Brandub by opentafl, and may misbehave.

    python scripted_engine.py PROTOCOL BEHAVIOR [MOVE]

It misbehaves from its move number MOVE on, 0 by default; before, it plays the first free square.
"""

import os
import sys
import time

HARMLESS = ("good", "resigns", "numbers", "slow", "refuse", "unfit")
SQUARES = [column + row for row in "321" for column in "abc"]


def misbehave(behavior: str) -> str:
    """What it sends instead of a move."""
    if behavior == "silent":
        time.sleep(600)
    if behavior == "crash":
        print("no memory\nthat was all\n", file=sys.stderr, flush=True)
        sys.exit(3)
    if behavior == "deaf":
        os.close(1)
        time.sleep(600)
    if behavior == "flood":
        while True:
            print("still thinking", flush=True)
    if behavior == "long":
        print("x" * 10_000_000, flush=True)
    return {"illegal": "z9", "empty": "", "binary": "\udcff\x00", "resign": "resign"}.get(behavior, "")


class Engine:
    def __init__(self, behavior: str, after: int) -> None:
        self.behavior, self.after, self.made, self.taken = behavior, after, 0, set()

    def new_game(self, taken: str = "") -> None:
        self.made, self.taken = 0, {square for square, cell in zip(SQUARES, taken, strict=False) if cell in "XO"}

    def resigns(self) -> bool:
        return self.behavior == "resigns" and self.made >= self.after

    def move(self) -> str:
        if self.behavior not in HARMLESS and self.made >= self.after:
            return misbehave(self.behavior)
        if self.behavior == "slow":
            time.sleep(0.2)
        move = next(square for square in SQUARES if square not in self.taken)
        self.made += 1
        self.taken.add(move)
        return move


def send(text: str) -> None:
    sys.stdout.buffer.write(f"{text}\n".encode(errors="surrogateescape"))
    sys.stdout.buffer.flush()


def speak_gtp(engine: Engine) -> None:
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "protocol_version":
            send("=7 2\n" if engine.behavior == "numbers" else "= 2\n")
        elif word == "clear_board":
            engine.new_game()
            send("=\n")
        elif word == "play":
            engine.taken.add(rest[1])
            send("? no\n" if engine.behavior == "refuse" else "=\n")
        elif word == "genmove":
            send("= Resign\n" if engine.resigns() else f"= {engine.move()}\n")
        elif word == "quit":
            send("=\n")
            return


def speak_line(engine: Engine) -> None:
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "azjax":
            send("error only chess here" if engine.behavior == "unfit" else "ok")
        elif word == "new":
            engine.new_game(*rest[1:])
            send("ok")
        elif word == "play":
            engine.taken.add(rest[0])
            send("error never" if engine.behavior == "refuse" else "ok")
        elif word == "go":
            send("thinking about it\n" + ("resign" if engine.resigns() else f"move {engine.move()}"))
        elif word == "quit":
            return
        else:
            send("ok")


def speak_opentafl(engine: Engine) -> None:
    """Moves a piece to and fro; its behavior is the name of a file, to which it appends the commands."""
    send("starting")
    send("hello")
    for line in sys.stdin:
        with open(engine.behavior, "a") as file:
            file.write(line)
        if line.startswith("play"):
            send(f"move {('d7-e7', 'e7-d7')[engine.made % 2]}")
            engine.made += 1


if __name__ == "__main__":
    protocol, behavior, *number = sys.argv[1:]
    if behavior == "unfit" and protocol == "gtp":
        time.sleep(600)
    {"gtp": speak_gtp, "line": speak_line, "opentafl": speak_opentafl}[protocol](Engine(behavior, int(*number)))
