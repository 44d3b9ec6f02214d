"""What each workload used: which pods are whose, what is idle, and what is not known."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec
import pytest

from keda_gpu_scaler.snapshot.observation import Observation, Series, Target
from keda_gpu_scaler.spec.durations import DAY_SECONDS
from keda_gpu_scaler.spec.workload import NO_OWNER, Owner
from keda_gpu_scaler.workbench.survey.usage import (
    LIST_SECONDS,
    STEP_SECONDS,
    Links,
    PodKey,
    Stretch,
    UsagePart,
    Used,
    stretches,
    usages,
    used_by,
)

SET = Owner("ReplicaSet", "bert-7b6667bd9")
LINKS = Links(
    {
        ("ml", "bert-7b6667bd9-bbbbb"): SET,
        ("ml", "old-7b6667bd9-bbbbb"): Owner("ReplicaSet", "old-7b6667bd9"),
        ("ml", "llm-0"): Owner("StatefulSet", "llm"),
        ("ml", "llm-0-1"): Owner("StatefulSet", "llm-0"),
        ("ml", "job-x"): Owner("Job", "nightly-123"),
        ("ml", "alone-1"): NO_OWNER,
    },
    {
        ("ml", SET): Owner("Deployment", "bert"),
        ("ml", Owner("ReplicaSet", "old-7b6667bd9")): NO_OWNER,
        ("ml", Owner("Job", "nightly-123")): Owner("CronJob", "nightly"),
    },
)


@pytest.mark.parametrize(
    ("pod", "kind", "name"),
    [
        ("bert-7b6667bd9-bbbbb", "Deployment", "bert"),
        ("old-7b6667bd9-bbbbb", "ReplicaSet", "old-7b6667bd9"),
        ("llm-0", "StatefulSet", "llm"),
        # A worker of a LeaderWorkerSet, whose StatefulSet is named like its leader.
        ("llm-0-1", "StatefulSet", "llm"),
        ("job-x", "CronJob", "nightly"),
        ("alone-1", "Pod", "alone-1"),
        # Not listed: by the name alone.
        ("web-5f6d8c9b7d-x2x4z", "Deployment", "web"),
        ("queue-12", "StatefulSet", "queue"),
        ("notebook", "Pod", "notebook"),
    ],
)
def test_the_workload_of_a_pod(pod: str, kind: str, name: str) -> None:
    assert used_by(("ml", pod), LINKS) == Used("ml", kind, name)


STEPS = 10
TIMES = [600.0 + STEP_SECONDS * (step + 1) for step in range(STEPS)]
LISTS = {600.0, 900.0, 1200.0}
FIRST, SECOND = ("ml", "bert-7b6667bd9-bbbbb"), ("ml", "bert-7b6667bd9-ccccc")
BERT = "ml/Deployment/bert"


def series(pod: PodKey, loads: Sequence[float | None], gpu: str = "") -> Series:
    shown = {at: load for at, load in zip(TIMES, loads, strict=False) if load is not None}
    times, target = tuple(shown), Target("dcgm", "10.0.0.1:9400")
    return Series(*pod, gpu or f"GPU-{pod[1]}", target, times, times, tuple(shown.values()), False)


def stretch(*shown: Series, there: Mapping[PodKey, set[float]] | None = None) -> Stretch:
    found = stretches(Observation(tuple(TIMES), shown, {}), there or {}, LINKS)
    assert found.keys() == {BERT}
    return found[BERT]


IDLE, B, F, N = 1.0, 50.0, 99.0, None
"""Idle, busy, full, not shown."""


@pytest.mark.parametrize(
    ("first", "second", "steps"),
    [
        ([IDLE] * 10, None, "iiiiiiiiii"),
        ([IDLE, B, F] * 3 + [IDLE], None, "ibfibfibfi"),
        ([IDLE] * 10, [F] * 10, "bbbbbbbbbb"),
        ([F] * 10, [F] * 5 + [B] * 5, "fffffbbbbb"),
        # One that is not shown, and that nothing lists, is not there.
        ([IDLE] * 5 + [N] * 5, None, "iiiii....."),
        ([N, IDLE] * 5, [IDLE] * 10, "iiiiiiiiii"),
    ],
)
def test_a_workload_is_what_all_of_its_pods_are(
    first: list[float | None], second: list[float | None] | None, steps: str
) -> None:
    pods = [series(FIRST, first), *([] if second is None else [series(SECOND, second)])]
    assert stretch(*pods).steps == steps


def test_a_pod_that_is_listed_and_not_shown_is_unknown() -> None:
    idle = series(FIRST, [IDLE] * 4 + [N] * 6)
    found = stretch(idle, there={FIRST: LISTS})
    assert found == Stretch("iiii??????", 4, 4, 4, 10, 1, 1)
    # The other one is idle: of the whole workload nothing is known.
    found = stretch(idle, series(SECOND, [IDLE] * 10), there={FIRST: LISTS, SECOND: LISTS})
    assert found == Stretch("iiii??????", 14, 14, 14, 20, 2, 1)


def test_a_pod_is_there_between_two_lists_that_show_it() -> None:
    # It came or went at some time between two lists of which only one shows it.
    found = stretch(series(FIRST, [IDLE] * 10), there={SECOND: {600.0, 900.0}})
    assert found.steps == "?????iiiii"
    assert LIST_SECONDS == 5 * STEP_SECONDS


def test_a_number_that_is_refused_is_unknown() -> None:
    shown = replace(series(FIRST, [IDLE] * 9), present=tuple(TIMES))
    assert stretch(shown) == Stretch("iiiiiiiii?", 9, 9, 9, 10, 1, 1)


def test_gpus_are_counted_one_by_one() -> None:
    busy, idle = series(FIRST, [F] * 10, "GPU-1"), series(FIRST, [IDLE] * 10, "GPU-2")
    other_target = replace(idle, target=Target("dcgm", "10.0.0.2:9400"))
    assert stretch(busy, idle, other_target) == Stretch("b" * 10, 20, 10, 10, 10, 1, 2)


WHOLE = Stretch(steps="", gpus=0, idle=0, shown=1, pods=1, most_replicas=2, most_gpus=1)


def parts(*steps: str, **changes: int) -> list[UsagePart]:
    return [
        UsagePart(
            number,
            {
                BERT: msgspec.structs.replace(
                    WHOLE,
                    steps=text,
                    gpus=len(text) - text.count("?"),
                    idle=text.count("i"),
                    **changes,
                )
            },
        )
        for number, text in enumerate(steps)
    ]


DAY = round(DAY_SECONDS / STEP_SECONDS)


@pytest.mark.parametrize(
    ("steps", "changes", "verdict"),
    [
        (["i" * DAY], {}, "idle for 1.0 days at a stretch: is it still needed?"),
        (["b" + "i" * (DAY // 2), "i" * DAY], {}, "idle for 1.5 days at a stretch"),
        (["i" * (DAY - 1) + "?i"], {}, "scale it by its load"),
        (["i" * (DAY - 1) + ".i"], {}, "scale it by its load"),
        (["b" * 98 + "ii"], {}, "never idle: do not touch"),
        (["b" * 97 + "iii"], {}, "scale it by its load"),
        (["f" * 20 + "b" * 80], {}, "all of it was full for 20 % of the time: it needs more"),
        (["f" * 19 + "i" * 81], {}, "scale it by its load"),
        (["i" * DAY], {"pods": 3}, "not known: exporters showed it for 33.3 % of its time only"),
        (["?" * DAY], {"most_gpus": 0, "shown": 0}, "not known: no exporter shows its GPUs"),
    ],
)
def test_the_verdict(steps: list[str], changes: dict[str, int], verdict: str) -> None:
    (usage,) = usages(parts(*steps, **changes))
    assert usage.verdict.startswith(verdict), usage.verdict


def test_time_without_a_workload_is_not_bridged() -> None:
    first, second = parts("i" * DAY, "i" * DAY)
    between = UsagePart(0.5, {})
    (usage,) = usages([first, between, second])
    assert usage.longest_idle_seconds == DAY_SECONDS
    assert usage.gpu_hours == usage.idle_hours == 48


def test_the_most_idle_come_first_and_the_unknown_last() -> None:
    idle = parts("ibbb")[0].workloads[BERT]
    busy = msgspec.structs.replace(idle, idle=0)
    unknown = msgspec.structs.replace(busy, gpus=0, most_gpus=0)
    part = UsagePart(0.0, {"ml/Pod/u": unknown, "ml/Pod/b": busy, BERT: idle})
    assert [usage.used.name for usage in usages([part])] == ["bert", "b", "u"]
