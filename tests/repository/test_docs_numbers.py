"""The numbers on the pages are those of the model of the HPA, and of the loops that it runs in."""

import re
from math import ceil

import pytest
import yaml

from keda_gpu_scaler.autoscaling import rules
from keda_gpu_scaler.autoscaling.rules import MetricType
from keda_gpu_scaler.decision.decision import Context, decide
from keda_gpu_scaler.decision.newest import FULL_GROWTH, FULL_LOAD
from tests.repository.test_docs import ROOT, section, table
from tests.stories.loops.test_climbing import CLIMBED_SECONDS
from tests.stories.loops.test_demand import WAITED_SECONDS
from tests.support.snapshots import NOW, bert, said, snapshot
from tests.support.triggers import spec

CONCEPTS = ROOT / "docs" / "concepts.md"
WRONG_SIGNAL = ROOT / "docs" / "wrong-signal.md"
MIGRATE = ROOT / "docs" / "migrate"


def replicas(
    value: float,
    target: float,
    now: int,
    kind: MetricType,
    tolerances: rules.Tolerances = rules.CLUSTERS,
) -> int:
    """Return how many replicas the HPA asks for."""
    metric = rules.Metric(value=value, target=target, metric_type=kind)
    step = rules.recommend([metric], rules.Scale.steady(now), tolerances)
    assert step is not None
    return step.replicas


def summed(each: float, target: float, now: int) -> int:
    """Return the same for the sum over pods that each show this value."""
    return replicas(each * now, target, now, MetricType.AVERAGE_VALUE)


def full(threshold: float, now: int) -> int:
    """Return how many replicas the scaler asks for while all of them are full."""
    return max(summed(100 * FULL_LOAD, threshold, now), ceil(FULL_GROWTH * now))


def arithmetic_row(kind: MetricType, *, summed: bool) -> list[str]:
    counts = [replicas(90 * (now if summed else 1), 70, now, kind) for now in (1, 2, 5)]
    returned = "the sum over pods" if summed else "the average"
    return [returned, kind, *map(str, counts)]


def test_the_table_of_what_is_returned_is_the_arithmetic_of_the_hpa() -> None:
    kinds = [(kind, summed) for kind in MetricType for summed in (False, True)]
    rows = [arithmetic_row(kind, summed=summed) for kind, summed in kinds]
    head = ["the scaler returns", "metricType", *(f"{n} replica{'s' * (n > 1)}" for n in (1, 2, 5))]
    assert section(CONCEPTS, "arithmetic") == table(head, rows)


def test_the_table_of_the_tolerance_is_the_hpas() -> None:
    shown = (40, 62, 63, 70, 77, 78, 90)
    found = ["replicas", *(str(summed(each, 70, 5)) for each in shown)]
    head = ["each pod shows", *(f"{each} %" for each in shown)]
    assert section(CONCEPTS, "tolerance") == table(head, [found])


def test_the_table_of_an_hpas_own_tolerances_is_the_hpas_for_the_behavior_above_it() -> None:
    (text,) = re.findall(r"```yaml\n(spec:.*?tolerance.*?)```", CONCEPTS.read_text(), re.DOTALL)
    advanced = yaml.safe_load(text)["spec"]["advanced"]
    behavior = advanced["horizontalPodAutoscalerConfig"]["behavior"]
    up, down = (float(behavior[each]["tolerance"]) for each in ("scaleUp", "scaleDown"))
    own = rules.Tolerances(up=up, down=down)
    shown = (40, 62, 66, 67, 84, 85, 94)
    cells = [replicas(5 * each, 70, 5, MetricType.AVERAGE_VALUE, own) for each in shown]
    head = ["each pod shows", *(f"{each} %" for each in shown)]
    assert section(CONCEPTS, "tolerances") == table(head, [["replicas", *map(str, cells)]])


def test_the_table_of_the_aggregations_is_what_the_scaler_answers() -> None:
    rows = []
    for loads in ((60, 60, 60, 60), (96, 48, 48, 48), (100, 20, 0, 0), (40, 10, 10, 10)):
        pods = [bert(one, each, status=said()) for one, each in zip("bcdf", loads, strict=True)]
        answers = [
            decide(spec(aggregation=one), snapshot(*pods), Context(NOW, 3600.0)).value or 0.0
            for one in ("sum", "max", "p95")
        ]
        asked = [replicas(one, 70, 4, MetricType.AVERAGE_VALUE) for one in answers]
        shown = ", ".join(f"{each} %" for each in loads)
        rows.append([shown, *(f"{one:g} %" for one in answers), ", ".join(map(str, asked))])
    by = "replicas by `sum`, `max`, `p95` at 70"
    head = ["replicas show", "`sum`", "`max`", "`p95`", by]
    assert section(ROOT / "docs" / "trigger.md", "aggregations") == table(head, rows)


def test_a_threshold_that_a_wide_tolerance_hides_is_where_the_page_says() -> None:
    wide = rules.Tolerances(up=0.2)
    found = [replicas(100, each, 1, MetricType.AVERAGE_VALUE, wide) for each in (83, 84)]
    assert found == [2, 1]


def climb(threshold: int) -> list[int]:
    """Return the replicas on the way to twelve, with all of them full at each step."""
    path = [1]
    while path[-1] < 12:
        path.append(min(12, full(threshold, path[-1])))
    return path


def test_the_table_of_the_climb_is_what_full_replicas_can_ask_for() -> None:
    rows = [
        [
            str(each),
            f"\N{MULTIPLICATION SIGN}{max(100 * FULL_LOAD / each, FULL_GROWTH):.2f}",
            ", ".join(map(str, climb(each))),
        ]
        for each in (50, 60, 70, 80, 90)
    ]
    head = ["threshold", "grows by", "from one replica to twelve"]
    assert section(CONCEPTS, "climb") == table(head, rows)


def test_the_times_of_a_climb_are_those_that_the_loops_claim() -> None:
    rows = [
        [f"{start:g} s", f"{alone} s at most", f"{ceil(WAITED_SECONDS[start] / 4)} s at most"]
        for start, alone in CLIMBED_SECONDS.items()
    ]
    head = ["a pod takes to start", "by utilization alone", "with a demand"]
    assert section(CONCEPTS, "climbing-times") == table(head, rows)


@pytest.mark.parametrize("threshold", [91, 95])
def test_above_90_full_replicas_are_within_the_tolerance(threshold: int) -> None:
    assert summed(100, threshold, 5) == 5


def settled(requests: int, per_replica: float, shown: int) -> int:
    """Return the final replicas, if each one with a request shows this value."""
    now, before = 1, 0
    while now != before:
        busy = requests if shown == 1 else min(requests, now)
        before, now = now, replicas(shown * busy, per_replica, now, MetricType.AVERAGE_VALUE)
    return now


def test_engines_with_one_request_each_are_what_utilization_counts() -> None:
    rows = [
        [str(each), str(settled(each, 70, shown=100)), str(settled(each, 16, shown=1))]
        for each in (1, 4, 12, 40, 100)
    ]
    head = ["requests in progress", "replicas by utilization", "replicas by requests, 16 each"]
    assert section(WRONG_SIGNAL, "requests") == table(head, rows)


def test_the_recipe_of_the_managed_cloud_gives_the_same_replicas() -> None:
    rows = [[f"{shown} %", str(max(1, summed(shown, 20, 1)))] for shown in (22, 23, 0)]
    head = ["one pod shows, target 20", "replicas"]
    assert section(MIGRATE / "managed-cloud-adapter.md", "cloud") == table(head, rows)


@pytest.mark.parametrize(
    ("page", "shown", "target", "path"),
    [
        ("keda-prometheus", 90, 70, "1 → 2, 2 → 3, 5 → 7"),
        ("pmady-keda-gpu-scaler", 90, 80, "1 → 2, 5 → 6"),
    ],
)
def test_the_replicas_that_a_page_promises_are_the_hpas(
    page: str, shown: float, target: float, path: str
) -> None:
    assert f"| {path} |" in (MIGRATE / f"{page}.md").read_text()
    for step in path.split(", "):
        now, then = map(int, step.split(" → "))
        assert summed(shown, target, now) == then
        assert replicas(shown, target, now, MetricType.AVERAGE_VALUE) == 2


def of_one_pod(page: str, name: str, target: float, shown: list[float]) -> None:
    """Compare a table of what one pod shows and the replicas that follow."""
    rows = [[f"{each:g} %", str(summed(each, target, 1))] for each in shown]
    head = [f"one pod shows, target {target:g}", "replicas"]
    assert section(MIGRATE / page, name) == table(head, rows)


def test_the_recipes_of_the_duty_cycle_give_the_same_replicas() -> None:
    of_one_pod("prometheus-adapter.md", "duty-cycle", 40, [40, 44, 45, 63, 100])
    of_one_pod("gpu-exporter.md", "gpu-exporter", 20, [20, 22, 22.4, 23])
