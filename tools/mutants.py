"""What `mutmut run` has found: the score of each module, and each mutant that no test noticed.

`make mutants` runs it where mutmut ran. mutmut's own list names mutants only by a number.
"""

import subprocess
import sys
from collections import Counter, defaultdict

DEAD = ("killed", "timeout", "segfault")
"""A test failed, or never ended, or the interpreter did not survive it."""
UNTRIED = "not checked"


def mutmut(*words: str) -> str:
    """Return what a command of mutmut prints."""
    command = [sys.executable, "-m", "mutmut", *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def report() -> str:
    """Return a line for each module, and the changes that went unnoticed."""
    scores: dict[str, Counter[bool]] = defaultdict(Counter)
    unnoticed = []
    for line in mutmut("results", "--all", "true").splitlines():
        mutant, _, status = line.strip().partition(": ")
        if status == UNTRIED:
            continue
        scores[mutant.rpartition(".")[0]][status in DEAD] += 1
        if status not in DEAD:
            unnoticed.append(mutmut("show", mutant))
    if not scores:
        return "no mutant was tried"
    total = sum(scores.values(), Counter[bool]())
    lines = [_line(module, score) for module, score in (*sorted(scores.items()), ("all", total))]
    return "\n".join([*unnoticed, *lines])


def _line(module: str, score: Counter[bool]) -> str:
    noticed, mutants = score[True], score.total()
    return f"{module:<40} {noticed:>5} of {mutants:>5} noticed, {100 * noticed / mutants:5.1f} %"


if __name__ == "__main__":
    sys.stdout.write(f"{report()}\n")
