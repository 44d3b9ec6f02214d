"""Pods that take turns on one series of a shared GPU stay; pods that end do not."""

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


def test_what_a_pod_did_long_ago_is_no_turn() -> None:
    """A StatefulSet's pod that was replaced twice within an hour is not there in between."""
    instants = [60.0 * number for number in range(60)]
    there = tuple(at for at in instants if at not in {600.0, 1800.0} and at < 3000)
    gpu = Series("ml", "a", "GPU-a", NODE, there, there, there, averaged=False)

    assert fill_gaps([gpu], {NODE: dict.fromkeys(instants, 0.0)}) == (gpu,)


def test_turns_are_filled_up_as_far_as_they_are_remembered() -> None:
    instants = [30.0 * number for number in range(40)]
    there = tuple(instants[:20] + instants[21::2])
    gpu = Series("ml", "a", "GPU-a", NODE, there, there, there, averaged=False)
    (filled,) = fill_gaps([gpu], {NODE: dict.fromkeys(instants, 0.0)})

    late = {at for at in instants if at > instants[-1] - TURNS_SECONDS}
    assert filled.present == tuple(sorted({*there, *late}))


def test_a_neighbour_that_is_there_at_the_same_time_takes_no_turns() -> None:
    """Copies of a shared GPU: the pod between them was replaced."""
    gpu, other = shown("aaaa...aaaaa"), shown("b" * COUNT, "b")

    assert fill_gaps([gpu, other], GOOD) == (gpu, other)


@pytest.mark.parametrize(
    "other",
    [
        shown("....bbb.....", "b", gpu="GPU-b"),
        shown("....bbb.....", "b", target=OTHER),
    ],
)
def test_another_gpu_is_nobodys_turn(other: Series) -> None:
    gpu = shown("aaaa...aaaaa")

    assert fill_gaps([gpu, other], GOOD) == (gpu, other)


def test_a_gap_in_the_exporters_own_health_is_no_turn() -> None:
    gpu = shown("aa.aa.aa.aa.")
    good = {NODE: dict.fromkeys(gpu.present, 0.0)}

    assert fill_gaps([gpu], good) == (gpu,)
    assert fill_gaps([gpu], {}) == (gpu,)


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
