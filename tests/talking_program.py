"""A program that plays tic-tac-toe by gtp or by line, well or badly: the other side in tests of external players.

By opentafl it plays Brandub.

    python talking_program.py LANGUAGE BEHAVIOUR [MOVE]

From its move number MOVE on, 0 by default, it behaves; before, it plays the first free square.
"""

import os
import sys
import time

HARMLESS = ("good", "numbers", "slow", "refuse", "unfit")
SQUARES = [column + row for row in "321" for column in "abc"]


def misbehave(behaviour: str) -> str:
    """What it writes instead of a move."""
    if behaviour == "silent":
        time.sleep(600)
    if behaviour == "crash":
        sys.exit(3)
    if behaviour == "deaf":
        os.close(1)
        time.sleep(600)
    if behaviour == "flood":
        while True:
            print("still thinking", flush=True)
    if behaviour == "long":
        print("x" * 10_000_000, flush=True)
    return {"illegal": "z9", "empty": "", "binary": "\udcff\x00", "resign": "resign"}.get(behaviour, "")


class Program:
    def __init__(self, behaviour: str, after: int) -> None:
        self.behaviour, self.after, self.made, self.taken = behaviour, after, 0, set()

    def new_game(self, taken: str = "") -> None:
        self.made, self.taken = 0, {square for square, cell in zip(SQUARES, taken, strict=False) if cell in "XO"}

    def move(self) -> str:
        if self.behaviour not in HARMLESS and self.made >= self.after:
            return misbehave(self.behaviour)
        if self.behaviour == "slow":
            time.sleep(0.2)
        move = next(square for square in SQUARES if square not in self.taken)
        self.made += 1
        self.taken.add(move)
        return move


def say(text: str) -> None:
    sys.stdout.buffer.write(f"{text}\n".encode(errors="surrogateescape"))
    sys.stdout.buffer.flush()


def speak_gtp(program: Program) -> None:
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "protocol_version":
            say("=7 2\n" if program.behaviour == "numbers" else "= 2\n")
        elif word == "clear_board":
            program.new_game()
            say("=\n")
        elif word == "play":
            program.taken.add(rest[1])
            say("? no\n" if program.behaviour == "refuse" else "=\n")
        elif word == "genmove":
            say(f"= {program.move()}\n")
        elif word == "quit":
            say("=\n")
            return


def speak_line(program: Program) -> None:
    for line in sys.stdin:
        word, *rest = line.split()
        if word == "azjax":
            say("error only chess here" if program.behaviour == "unfit" else "ok")
        elif word == "new":
            program.new_game(*rest[1:])
            say("ok")
        elif word == "play":
            program.taken.add(rest[0])
            say("error never" if program.behaviour == "refuse" else "ok")
        elif word == "go":
            say(f"thinking about it\nmove {program.move()}")
        elif word == "quit":
            return
        else:
            say("ok")


def speak_opentafl(program: Program) -> None:
    """Moves a piece to and fro; its behaviour is the file that keeps what it was told."""
    say("starting")
    say("hello")
    for line in sys.stdin:
        with open(program.behaviour, "a") as file:
            file.write(line)
        if line.startswith("play"):
            say(f"move {('d7-e7', 'e7-d7')[program.made % 2]}")
            program.made += 1


if __name__ == "__main__":
    language, behaviour, *number = sys.argv[1:]
    if behaviour == "unfit" and language == "gtp":
        time.sleep(600)
    {"gtp": speak_gtp, "line": speak_line, "opentafl": speak_opentafl}[language](Program(behaviour, int(*number)))
