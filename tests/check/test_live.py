"""What the source shows is judged at the key to blame; each rule has a look that it passes."""

from dataclasses import replace
from typing import Any

import pytest

from keda_gpu_scaler.check import documents, live
from keda_gpu_scaler.check.catalog import LIVE
from keda_gpu_scaler.check.findings import Finding
from keda_gpu_scaler.check.live import Seen
from keda_gpu_scaler.check.objects import Terms, manifests
from tests.check.cases import SLEEPS

WELL = Seen(has_gpus=True, metrics=["DCGM_FI_DEV_GPU_UTIL"], interval_seconds=15.0)
UNSEEN = replace(WELL, has_gpus=False, has_series=True)
HERE, THERE = ("inference", "bart-6f846897c4-66lpk"), ("web", "other-0")
FAILS: dict[str, tuple[Seen, str, int]] = {
    "no-answer": (Seen(trouble="All connection attempts failed"), "attempts failed", 13),
    "no-series": (replace(UNSEEN, has_series=False), "there is no DCGM_FI_DEV_GPU_UTIL", 15),
    "no-pod-labels": (UNSEEN, "name no pod", 15),
    "no-pods": (replace(UNSEEN, pods=[HERE, THERE]), "are shown: bart-6f846897c4-66lpk", 15),
    "late-samples": (replace(WELL, lag_seconds=90.0), "arrive 1m30s late: every", 13),
    "slow-scrape": (replace(WELL, interval_seconds=121.0), "every 2m1s, and window is 2m", 13),
    "no-readiness": (replace(WELL, has_readiness=False), "which are Ready", 13),
    "demand-unknown": (replace(WELL, demand_trouble="HTTP 400: x"), "not known: HTTP 400: x", 17),
    "gateway-forgets": (
        replace(WELL, has_gpus=False, is_empty=True, gateway_status=404),
        "answers 404",
        17,
    ),
}
"""For each rule a look that it fails, what it says, and in which line."""


def judged(seen: Seen, more: str = "") -> list[Finding]:
    """Return what is found in a workload that a demand wakes."""
    (document,) = documents.read(SLEEPS + more).documents
    (one,) = manifests("one.yaml", document, Terms())
    (trigger,) = one.ours
    assert trigger.spec is not None
    return list(live.check(trigger, trigger.spec, seen))


def names(seen: Seen, more: str = "") -> list[str]:
    return [one.rule.name for one in judged(seen, more)]


def test_every_rule_is_here() -> None:
    assert FAILS.keys() == LIVE


def test_nothing_is_found_where_all_is_well() -> None:
    assert judged(WELL) == []


@pytest.mark.parametrize("rule", FAILS)
def test_a_rule_finds_what_it_is_for_at_the_key_to_blame(rule: str) -> None:
    seen, said, line = FAILS[rule]
    first = judged(seen)[0]
    assert (first.rule.name, first.position.line) == (rule, line)
    assert said in first.why


@pytest.mark.parametrize(
    ("change", "more", "rule", "said"),
    [
        ({"has_series": None}, "", "no-pods", "the source shows no GPU of deployment/bert"),
        ({"has_series": False, "newest_age_seconds": 720.4}, "", "late-samples", "is 12m old"),
        (
            {"has_series": False, "has_other_series": True},
            "        signal: sm-activity\n",
            "no-series",
            "none the signal sm-activity",
        ),
        ({"pods": [THERE]}, "", "no-pods", "shown in: web"),
        (
            {"pods": [("inference", f"p{number}") for number in range(7)]},
            "",
            "no-pods",
            "shown: p0, p1, p2, p3, p4 and 2 more",
        ),
        ({"pods": [("inference", "\x1b[31m")]}, "", "no-pods", r"\x1b[31m"),
    ],
)
def test_where_no_gpu_is_seen_it_says_what_there_is(
    change: dict[str, Any], more: str, rule: str, said: str
) -> None:
    (one,) = judged(replace(UNSEEN, interval_seconds=None, **change), more)
    assert one.rule.name == rule
    assert said in one.why


def test_a_workload_that_is_known_to_have_no_pods_needs_no_gpus() -> None:
    assert names(replace(UNSEEN, is_empty=True)) == []


def test_a_lag_beyond_the_age_of_samples_makes_them_stale() -> None:
    (one,) = judged(replace(WELL, lag_seconds=300.0))
    assert "take them for stale" in one.why


def test_each_window_is_compared_with_the_scrapes_and_blamed_where_it_is_written() -> None:
    first, second = judged(
        replace(WELL, interval_seconds=60.0),
        "        window: 30s\n        activationWindow: 45s\n",
    )
    assert [first.position.line, second.position.line] == [18, 19]
    assert first.fix.startswith("Write 2m or more")
    assert names(replace(WELL, interval_seconds=60.0)) == []


def test_a_gateway_may_answer_404_where_there_are_pods_and_503_where_there_are_none() -> None:
    assert names(replace(WELL, gateway_status=404)) == []
    assert names(replace(WELL, has_gpus=False, is_empty=True, gateway_status=503)) == []
