"""What the source shows is judged at the key to blame; each rule has a look that it passes."""

from dataclasses import replace
from typing import Any

import pytest

from keda_gpu_scaler.record.causes import Cause
from keda_gpu_scaler.workbench.check import OF_SOURCES, documents, live
from keda_gpu_scaler.workbench.check.live import Seen
from keda_gpu_scaler.workbench.check.manifests import manifests
from tests.workbench.check.cases import SLEEPS, key

WELL = Seen(has_gpus=True, interval_seconds=15.0)
UNSEEN = replace(WELL, has_gpus=False)
CAUSE = Cause("no-pod-labels", "no pod is named", "let it name pods")
WINDOWS = ("window: 30s", "activationWindow: 45s")


def judged(seen: Seen, *keys: str) -> list[tuple[str, int, str]]:
    """Return the rule, the line and the sentence of what is found in a workload that sleeps."""
    (document,) = documents.read(key(SLEEPS, *keys)).documents
    (one,) = manifests("one.yaml", document, "default")
    (trigger,) = one.ours
    assert trigger.spec is not None
    found = live.check(trigger, trigger.spec, seen)
    return [(rule, wrong.position.line, f"{wrong.why}. {wrong.fix}") for rule, wrong in found]


ROWS: list[tuple[Seen, dict[str, Any], str, int, str]] = [
    (WELL, {"trouble": "source default: No route"}, "no-answer", 13, "does not answer: No route"),
    (WELL, {"lag_seconds": 90.0}, "late-samples", 13, "1m30s late, and so does every decision"),
    (WELL, {"lag_seconds": 300.0}, "late-samples", 13, "too old for the HPA's calls"),
    (WELL, {"interval_seconds": 121.0}, "slow-scrape", 13, "every 2m1s, and window is 2m"),
    (WELL, {"suspects": ["A is 0"]}, "stuck-metric", 13, "A is 0. Compare it with nvidia-smi"),
    (WELL, {"has_readiness": False}, "no-readiness", 13, "those that are Ready"),
    (WELL, {"demand_trouble": "HTTP 400: x"}, "demand-unknown", 17, "unknown: HTTP 400: x"),
    (UNSEEN, {}, "no-pods", 15, "the source shows no GPU of deployment/bert"),
    (UNSEEN, {"cause": CAUSE}, "no-pod-labels", 15, "no pod is named. Let it name pods."),
    (UNSEEN, {"cause": CAUSE._replace(rule="no-series")}, "no-series", 15, "no pod is named"),
    (UNSEEN, {"cause": CAUSE._replace(names=("a", "b"))}, "no-pod-labels", 15, "named (a, b)."),
    (
        UNSEEN,
        {"cause": CAUSE._replace(names=tuple("abcdefg"))},
        "no-pod-labels",
        15,
        "e and 2 more",
    ),
    (UNSEEN, {"cause": CAUSE._replace(names=("\x1b[31m",))}, "no-pod-labels", 15, r"\x1b[31m"),
    (UNSEEN, {"has_ended_series": True}, "late-samples", 15, "the newest sample of any GPU is"),
]


def test_every_rule_is_here() -> None:
    assert {row[2] for row in ROWS} == {rule.name for rule in OF_SOURCES}


@pytest.mark.parametrize(("seen", "change", "rule", "line", "said"), ROWS)
def test_a_rule_finds_what_it_is_for_at_the_key_to_blame(
    seen: Seen, change: dict[str, Any], rule: str, line: int, said: str
) -> None:
    found_rule, found_line, sentence = judged(replace(seen, **change))[0]
    assert (found_rule, found_line) == (rule, line)
    assert said in sentence


@pytest.mark.parametrize("seen", [WELL, replace(UNSEEN, is_empty=True)])
def test_nothing_is_found_where_all_is_well_or_the_workload_has_no_pods(seen: Seen) -> None:
    assert judged(seen) == []


def test_each_window_is_compared_with_the_scrapes_and_blamed_where_it_is_written() -> None:
    slow = replace(WELL, interval_seconds=60.0)
    first, second = judged(slow, *WINDOWS)
    assert [first[1], second[1]] == [18, 19]
    assert "Write 2m or more" in first[2]
    assert judged(slow) == []
