"""Pods that take turns on one series of a shared GPU stay; pods that end do not."""

from collections.abc import Iterable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.snapshot.observation import Series, Target
from keda_gpu_scaler.sources.series import TURNS_SECONDS, fill_gaps

NODE, OTHER = Target("dcgm", "10.0.0.1:9400"), Target("dcgm", "10.0.0.2:9400")
COUNT = 12
INSTANTS = tuple(15.0 * number for number in range(COUNT))
GOOD = {NODE: dict.fromkeys(INSTANTS, 0.0), OTHER: dict.fromkeys(INSTANTS, 0.0)}


def shown(turns: str, pod: str = "a", gpu: str = "GPU-a", target: Target = NODE) -> Series:
    """Return a series with a sample wherever `turns` has its pod's letter."""
    times = tuple(at for at, turn in zip(INSTANTS, turns, strict=True) if turn == pod)
    return Series("ml", pod, gpu, target, times, times, tuple(50.0 for _ in times), averaged=False)


def seen(instants: Iterable[float]) -> Series:
    times = tuple(instants)
    return Series("ml", "a", "GPU-a", NODE, times, times, times, averaged=False)


def present(turns: str, pod: str = "a") -> str:
    """Return the instants of a pod after the gaps of all pods in `turns` were filled."""
    everybody = [shown(turns, each) for each in sorted(set(turns) - {"."})]
    (gpu,) = [each for each in fill_gaps(everybody, GOOD) if each.pod == pod]
    return "".join(pod if at in gpu.present else "." for at in INSTANTS)


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        pytest.param("aaaaaaaaaaaa", "aaaaaaaaaaaa", id="alone"),
        pytest.param("abababababab", "aaaaaaaaaaaa", id="in turn"),
        pytest.param("aabbbaacccdd", "aaaaaaaaaaaa", id="of four, by chance"),
        pytest.param("..ab.aaaaaaa", "..aaaaaaaaaa", id="once, for another pod"),
        pytest.param(".a..a.aaa...", ".aaaaaaaaaaa", id="twice, for pods nobody asked about"),
        pytest.param("aaaa...aaaaa", "aaaa...aaaaa", id="replaced by its namesake"),
        pytest.param("aaaaaabbbbbb", "aaaaaa......", id="ended, and its GPU was given away"),
        pytest.param("bbbbbbaaaaaa", "......aaaaaa", id="began on the GPU of another"),
    ],
)
def test_a_pod_that_comes_back_was_there_all_the_time(turns: str, expected: str) -> None:
    assert present(turns) == expected


def test_turns_are_filled_up_as_far_as_they_are_remembered() -> None:
    instants = [30.0 * number for number in range(40)]
    there = tuple(instants[:20] + instants[21::2])
    (filled,) = fill_gaps([seen(there)], {NODE: dict.fromkeys(instants, 0.0)})

    late = {at for at in instants if at > instants[-1] - TURNS_SECONDS}
    assert filled.present == tuple(sorted({*there, *late}))


HOUR = [60.0 * number for number in range(60)]
GAP = shown("aaaa...aaaaa")
ODD = shown("aa.aa.aa.aa.")


@pytest.mark.parametrize(
    ("series", "good"),
    [
        pytest.param([GAP, shown("b" * COUNT, "b")], GOOD, id="a neighbour all the time"),
        pytest.param([GAP, shown("....bbb.....", "b", gpu="GPU-b")], GOOD, id="another GPU"),
        pytest.param([GAP, shown("....bbb.....", "b", target=OTHER)], GOOD, id="another target"),
        pytest.param([ODD], {NODE: dict.fromkeys(ODD.present, 0.0)}, id="no scrapes meanwhile"),
        pytest.param([ODD], {}, id="no scrapes at all"),
        pytest.param(
            [seen(at for at in HOUR if at not in {600.0, 1800.0} and at < 3000)],
            {NODE: dict.fromkeys(HOUR, 0.0)},
            id="replaced twice, long ago",
        ),
    ],
)
def test_what_is_no_turn_is_not_filled(
    series: list[Series], good: Mapping[Target, Mapping[float, float]]
) -> None:
    assert fill_gaps(series, good) == tuple(series)


turns_of = st.lists(st.sampled_from("abc."), min_size=COUNT, max_size=COUNT).map("".join)


@given(turns_of)
def test_a_pod_is_never_moved_or_lost(turns: str) -> None:
    everybody = [shown(turns, pod) for pod in sorted(set(turns) - {"."})]
    for gpu, before in zip(fill_gaps(everybody, GOOD), everybody, strict=True):
        assert set(before.present) <= set(gpu.present) <= set(INSTANTS)
        assert gpu.present[0] == before.present[0]
        assert list(gpu.present) == sorted(gpu.present)
        assert (gpu.pod, gpu.gpu) == (before.pod, before.gpu)
        # Nothing is known of the load in between.
        assert (gpu.times, gpu.values) == (before.times, before.values)
