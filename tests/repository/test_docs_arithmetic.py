"""The numbers on the page about the arithmetic are those of the HPA's own rules."""

import re

from keda_gpu_scaler.autoscaling.rules import MetricType, scale_up_limit
from keda_gpu_scaler.decision.pod_state import FULL
from tests.repository.test_docs import ROOT, section, table
from tests.repository.test_docs_numbers import full, replicas, summed

PAGE = ROOT / "docs" / "arithmetic.md"
OFFERED = 430
THRESHOLD = 70


def shown(now: int) -> float:
    """Return what each replica's GPU shows: a full one cannot say how much more there is."""
    return min(100.0, OFFERED / now)


def next_replicas(now: int) -> int:
    """Return how many replicas the scaler asks for."""
    each = shown(now)
    return full(THRESHOLD, now) if each >= FULL else summed(each, THRESHOLD, now)


def path() -> list[int]:
    """Return the replicas on the way to those that it keeps."""
    found = [1]
    while (following := next_replicas(found[-1])) != found[-1]:
        found.append(following)
    return found


def test_both_recipes_on_one_load_are_what_the_hpa_asks_for() -> None:
    rows = []
    for now in path():
        average = replicas(shown(now), THRESHOLD, now, MetricType.AVERAGE_VALUE)
        following = next_replicas(now)
        each, total = f"{shown(now):.0f} %", f"{shown(now) * now:.0f} %"
        rows.append([str(now), each, total, str(following), str(average)])
    head = [
        "replicas now",
        "each pod shows",
        "sum",
        "this scaler: next replicas",
        "`avg(...)`, AverageValue: next replicas",
    ]
    assert section(PAGE, "one-load") == table(head, rows)


def test_what_changes_nothing_is_within_the_hpas_tolerance() -> None:
    levels = (50, 63, 70, 77, 78, 90)
    head = ["each pod shows", *(f"{each} %" for each in levels)]
    cells = [str(summed(each, THRESHOLD, 4)) for each in levels]
    assert section(PAGE, "within") == table(head, [["next replicas", *cells]])


def test_the_rate_that_the_page_names_is_the_hpas() -> None:
    assert "At most twice the replicas in one sync, or four if that is more" in PAGE.read_text()
    assert [scale_up_limit(now) for now in (1, 2, 3, 10)] == [4, 4, 6, 20]


def test_the_value_that_targets_stand_for_is_their_product_with_the_replicas() -> None:
    (each, target, now, value) = re.findall(
        r"`(\d+)/(\d+) \(avg\)` with (\d+) replicas is a\s+value of (\d+)", PAGE.read_text()
    )[0]
    assert int(value) == int(each) * int(now)
    assert int(each) == round(OFFERED / int(now))
    assert int(target) == THRESHOLD
