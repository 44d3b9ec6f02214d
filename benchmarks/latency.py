"""How well a demand keeps a latency, and what steps by the latency add: `make bench-latency`.

The load, the bounds and the goal of llm-d's guide to autoscaling by latency: requests of 4,000
tokens that begin to be answered within 3 s, by 3 to 8 replicas that start in 100 s. A replica is a
model: 60 requests at a time fill its KV cache (Qwen3-32B on two H100), and it then does 1.45 in a
second, as the guide found. All others wait in one queue.
"""

import asyncio
import itertools
from collections import deque
from dataclasses import dataclass, field
from statistics import mean

from rich.console import Console
from rich.table import Table

from keda_gpu_scaler.autoscaling.rules import Hpa, Metric
from testbed.loops.loop import Loop
from testbed.triggers import demanding

STAGES = (2, 330), (4, 360), (6, 360), (8, 360), (10, 360), (4, 360), (1, 300)
"""Requests in a second, and for how long."""
ARRIVALS = list(itertools.chain.from_iterable([rate] * seconds for rate, seconds in STAGES))
MIN_REPLICAS, MAX_REPLICAS, START_SECONDS, GOAL_SECONDS = 3, 8, 100, 3.0
AT_ONCE, ANSWER_TOKENS = 60, 1000
PROMPT_SECONDS = 4000 / 15_928
"""By the prompt tokens that a replica reads in a second, of llm-d's guide to scaling by tokens."""
ALONE_SECONDS, FULL_SECONDS = 0.020, AT_ONCE / 1.45 / ANSWER_TOKENS
"""What a token of the answer takes: of one request, and of as many as there can be."""
DEMAND_THRESHOLDS = 16, 30, 45, 60, 90, 1000
SEEDS = 1, 2, 3


@dataclass(slots=True)
class Serving(Loop):
    """Servers that are scaled by their requests, and in steps by how long these wait."""

    has_steps: bool = False
    waiting: deque[int] = field(default_factory=deque)
    """When each has come."""
    running: dict[int, deque[float]] = field(default_factory=dict)
    """Of a replica, after how many tokens each of its requests is done."""
    tokens: dict[int, float] = field(default_factory=dict)
    first_seconds: list[float] = field(default_factory=list)
    """How long each request waited for its first token."""
    missed: list[bool] = field(default_factory=list)
    """Whether the goal was missed at a step by more than a tenth of what began since the last."""
    elapsed: int = 0
    stepped: int = -START_SECONDS
    asked: int = 0

    def _count(self) -> None:
        """Let the time until now pass for the requests, and count them."""
        before = len(self.first_seconds)
        while self.elapsed < self.clock - self.begin:
            self._serve({pod.number for pod in self._working(self.begin + self.elapsed)})
            self.elapsed += 1
        began = self.first_seconds[before:]
        late = sum(seconds > GOAL_SECONDS for seconds in began)
        self.missed.append(late > len(began) / 10)
        count = len(self.waiting) + sum(map(len, self.running.values()))
        self.monitoring.counted = lambda: float(count)

    def _serve(self, working: set[int]) -> None:
        """Let a second pass: what a replica has begun, it ends."""
        arrived = ARRIVALS[self.elapsed] if self.elapsed < len(ARRIVALS) else 0
        self.waiting.extend([self.elapsed] * arrived)
        for number in working | self.running.keys():
            batch = self.running.setdefault(number, deque())
            each = (FULL_SECONDS - ALONE_SECONDS) * len(batch) / AT_ONCE
            self.tokens[number] = self.tokens.get(number, 0.0) + 1 / (ALONE_SECONDS + each)
            while batch and batch[0] <= self.tokens[number]:
                batch.popleft()
        while self.waiting and working:
            emptiest = min(working, key=lambda number: len(self.running[number]))
            if len(self.running[emptiest]) >= AT_ONCE:
                break
            self.running[emptiest].append(self.tokens[emptiest] + ANSWER_TOKENS)
            self.first_seconds.append(self.elapsed - self.waiting.popleft() + PROMPT_SECONDS)

    async def _demanded(self) -> list[Metric]:
        """Return a step more while the goal was missed for a start, one in each; kept for 300 s."""
        if all(self.missed[-7:]) and self.elapsed >= self.stepped + START_SECONDS:
            self.stepped, self.asked = self.elapsed, self.replicas + 1
        elif not any(self.missed[-20:]):
            self.asked = 0
        return [Metric(value=self.asked, target=1)] if self.has_steps else []


def replay(demand_threshold: int, seed: int, *, has_steps: bool) -> tuple[float, float, float]:
    """Return the percent of requests within the goal, the mean replicas, and the changes."""
    loop = Serving(
        lambda _: 100.0 * MAX_REPLICAS,
        seed=seed,
        replicas=MIN_REPLICAS,
        start_seconds=START_SECONDS,
        hpa=Hpa(minimum=MIN_REPLICAS, maximum=MAX_REPLICAS),
        trigger=demanding("sum(r)", threshold="", demandThreshold=str(demand_threshold)),
        demand=lambda _: 0.0,
        has_steps=has_steps,
    )
    asyncio.run(loop.run(len(ARRIVALS) + 600))
    met = mean(seconds <= GOAL_SECONDS for seconds in loop.first_seconds)
    return 100 * met, mean(loop.sizes[: len(ARRIVALS) // 15]), len(loop.grown) - 1


def main() -> None:
    """Print what each demandThreshold gives, alone and with steps."""
    table = Table("demandThreshold", "within 3 s %", "replicas", "changes", "with steps", "", "")
    for threshold in DEMAND_THRESHOLDS:
        cells = []
        for has_steps in (False, True):
            runs = [replay(threshold, seed, has_steps=has_steps) for seed in SEEDS]
            met, replicas, changes = map(mean, zip(*runs, strict=True))
            cells += [f"{met:.1f}", f"{replicas:.2f}", f"{changes:.1f}"]
        table.add_row(str(threshold), *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
