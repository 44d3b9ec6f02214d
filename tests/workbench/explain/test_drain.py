"""The least busy pods get the lowest costs; what is not known gets none."""

import re
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import trigger
from keda_gpu_scaler.autoscaling.scale_in import COST
from keda_gpu_scaler.record.record import Record
from keda_gpu_scaler.snapshot.snapshot import Pod
from keda_gpu_scaler.spec.spec import TriggerSpec
from keda_gpu_scaler.workbench.explain.drain import drain
from testbed.triggers import BERT, access, spec
from tests.support.records import record
from tests.support.snapshots import NOW, bert, said, snapshot, unseen

PODS = "bert-7b6667bd9-"
COMMAND = re.compile(
    "kubectl annotate pod --namespace [a-z0-9-]+ (?P<pod>[a-z0-9.-]+) "
    f"(?:--overwrite {COST}=(?P<cost>-[0-9]+)|{COST}-)"
)


def decided(*pods: Pod, given: TriggerSpec | None = None) -> Record:
    return record(given or spec(), snapshot(*pods))


def costs(shown: Record) -> list[tuple[str, int]]:
    """Return the first letter of each pod that gets a cost, with the cost."""
    commands = [COMMAND.fullmatch(line) for line in drain(shown)]
    return [
        (one["pod"].removeprefix(PODS)[0], int(one["cost"]))
        for one in commands
        if one and one["cost"]
    ]


def test_the_least_busy_pod_goes_first_and_equal_ones_are_equal() -> None:
    given = spec(workload="", podPattern="bert-.*")
    shown = decided(bert("b", 90), bert("c", 0), bert("d", 40), bert("f", 40), given=given)
    assert costs(shown) == [("c", -3), ("d", -2), ("f", -2), ("b", -1)]


def test_between_equal_loads_the_busier_moment_decides() -> None:
    """A pod that had work a while ago may have more to come than one that had none."""
    burst = [100, 100, *[0] * 20]
    given = spec(window="1m", activationWindow="10m")
    shown = decided(bert("b", burst), bert("c", 0), given=given)
    assert costs(shown) == [("c", -2), ("b", -1)]


def test_a_pod_that_is_idle_by_now_goes_before_one_that_has_just_begun_to_work() -> None:
    """The mean of the second is lower, but a scale-in would cut its request."""
    ended, begun = [*[50] * 15, 0], [*[0] * 15, 50]
    shown = decided(bert("b", ended), bert("c", begun))
    assert costs(shown) == [("b", -2), ("c", -1)]


def test_where_the_newest_number_cannot_be_believed_the_mean_stands_in_for_it() -> None:
    refused = bert("b", 60)
    (gpu,) = refused.gpus
    refused = replace(
        refused,
        gpus=(replace(gpu, refused=gpu.times[-1:], times=gpu.times[:-1], values=gpu.values[:-1]),),
    )
    assert costs(decided(refused, bert("c", 30))) == [("c", -2), ("b", -1)]


def test_a_busy_gpu_that_misses_the_newest_sample_still_counts() -> None:
    both = bert("b", 90, 0)
    missed, idle = both.gpus
    missed = replace(missed, times=missed.times[:-1], values=missed.values[:-1])
    shown = decided(replace(both, gpus=(missed, idle)), bert("c", 50))
    assert costs(shown) == [("c", -2), ("b", -1)]


def test_a_pod_without_a_known_load_is_never_taken_before_one_with() -> None:
    """Without a cost it counts as 0, and every cost is below."""
    starting = unseen("d", said(never=True, created=NOW - 60))
    pods = (
        bert("b", 90),
        bert("c", 90, status=said(ready=NOW - 30)),
        starting,
        bert("f", 1, ended=True),
    )
    assert list(drain(decided(*pods))) == [
        "# ml/bert: deployment/bert by gpu-utilization",
        "# 90 % now, load 90 %, busiest moment 90 %",
        f"kubectl annotate pod --namespace ml {PODS}bbbbb --overwrite {COST}=-1",
        (
            f"# {PODS}ccccc gets none, and loses one from before: its load is not known yet: its "
            "samples cover less than half the window"
        ),
        f"kubectl annotate pod --namespace ml {PODS}ccccc {COST}-",
        (
            f"# {PODS}ddddd gets none, and loses one from before: it was never Ready, and is "
            "younger than startTimeout"
        ),
        f"kubectl annotate pod --namespace ml {PODS}ddddd {COST}-",
    ]


NAMED_BY_ENV = trigger.parse(
    BERT, {"workload": "bert", "threshold": "70", "namespaceFromEnv": "ml"}, access()
)


NOT_BY_COST = {
    "statefulset/bert": ("bert-0", "a StatefulSet always takes the pod with the highest number"),
    "leaderworkerset/bert": (
        "bert-0",
        "a LeaderWorkerSet always takes the group with the highest number",
    ),
    "job/bert": ("bert-bbbbb", "a Job's controller does not look at costs"),
}
"""For each kind of workload, the name of a pod and why it gets no cost."""


@pytest.mark.parametrize(
    ("shown", "line"),
    [
        (
            replace(decided(bert("b", 90)), pods_left_out=3),
            "# 3 more pods are not listed, and get none",
        ),
        (decided(unseen("b", said())), "# no costs: no pod's load is known"),
        (
            decided(bert("b", 90), given=NAMED_BY_ENV),
            "# no costs: the namespace of its pods is not known here",
        ),
        *(
            (
                decided(replace(bert("b", 90), name=pod), given=spec(workload=workload)),
                f"# no costs: {why}",
            )
            for workload, (pod, why) in NOT_BY_COST.items()
        ),
    ],
)
def test_where_a_pod_gets_no_cost_that_is_said(shown: Record, line: str) -> None:
    lines = list(drain(shown))
    assert line in lines
    assert (not costs(shown)) == line.startswith("# no costs")


@given(st.from_type(Record))
def test_whatever_a_record_holds_there_is_an_answer(shown: Record) -> None:
    for line in drain(shown):
        assert line.isprintable()
        assert line.startswith("#") or COMMAND.fullmatch(line)
