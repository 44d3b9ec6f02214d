"""What the benchmarks of demand make of what they measure: open streams, and waking from zero."""

import io
from pathlib import Path

import promql_parser
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.console import Console

from benchmarks import demand, report, streams, waking, world
from benchmarks.processes import ServerError
from benchmarks.streams import Stream, Watched
from benchmarks.waking import Kind, Sleeper
from keda_gpu_scaler import trigger
from keda_gpu_scaler.spec import ScaledObject
from tests.triggers import access

SECONDS = st.floats(min_value=1, max_value=1000)


@given(before=SECONDS, after=SECONDS)
def test_demand_is_zero_until_its_moment_and_one_from_then_on(before: float, after: float) -> None:
    rises_at = 1_000_000 + before
    samples = demand.rising("bert", 1_000_000, rises_at, rises_at + after).samples
    times = [time for time, _ in samples]
    assert times == sorted(set(times))
    assert times[-1] < rises_at + after
    assert (rises_at, 1) in samples
    assert all(value == float(time >= rises_at) for time, value in samples)


def test_a_demand_is_asked_for_by_what_its_series_is_called() -> None:
    promql_parser.parse(text := demand.promql("bert"))
    series = demand.rising("bert", 0, 1, 2)
    selector = ",".join(f'{label}="{value}"' for label, value in series.labels.items())
    assert text == f"sum({series.name}{{{selector}}})"


@given(rounds=st.integers(1, 100), seconds=SECONDS, seed=st.integers())
def test_demand_appears_once_in_each_part_of_the_time(
    rounds: int, seconds: float, seed: int
) -> None:
    moments = waking.moments(rounds, seconds, seed)
    parts = [int(moment / (seconds / rounds)) for moment in moments]
    assert parts == pytest.approx(range(rounds))
    assert moments == waking.moments(rounds, seconds, seed)


def test_each_round_wakes_one_workload_by_each_kind_of_trigger() -> None:
    names = [one.name for one in waking.sleepers(2)]
    assert names == [f"{kind}-{number}" for number in (0, 1) for kind in Kind]


def test_all_triggers_ask_the_same_and_ours_are_accepted() -> None:
    for kind in Kind:
        sleeper = Sleeper(kind, 3)
        found = sleeper.trigger("http://prometheus", "127.0.0.1:6000")
        metadata = found["metadata"]
        assert isinstance(metadata, dict)
        own = kind is Kind.PROMETHEUS
        assert metadata["query" if own else "demandQuery"] == demand.promql(sleeper.name)
        if not own:
            spec = trigger.parse(ScaledObject(world.NAMESPACE, sleeper.name), metadata, access())
            assert spec.demand is not None


def test_the_time_to_wake_is_compared_with_that_of_kedas_own_trigger() -> None:
    awake = {"prometheus-0": 110.0, "prometheus-1": 230.0}
    awake |= {"external-0": 125.0, "external-1": 225.0}
    awake |= {"external-push-0": 102.0, "external-push-1": 204.0}
    found = waking.woken([100, 200], awake)
    assert found.seconds[Kind.EXTERNAL_PUSH] == [2, 4]
    assert found.median(Kind.PROMETHEUS) == 20
    assert found.ratio(Kind.EXTERNAL) == 1.25
    assert found.ratio(Kind.EXTERNAL_PUSH) == 0.15
    report.show_woken(found, Console(file=(shown := io.StringIO()), width=100))
    for text in ("2 rounds", "30.0", "1.25", "0.15"):
        assert text in shown.getvalue()


@pytest.mark.parametrize(
    ("awake", "said"),
    [
        ({"prometheus-0": 110.0, "external-0": 111.0}, "external-push-0 was never woken"),
        (
            {"prometheus-0": 99.5, "external-0": 111.0, "external-push-0": 111.0},
            "prometheus-0 was woken 0.5 s before the demand",
        ),
    ],
)
def test_a_workload_that_is_woken_for_nothing_or_never_fails_the_benchmark(
    awake: dict[str, float], said: str
) -> None:
    with pytest.raises(ServerError, match=said):
        waking.woken([100], awake)


def test_half_of_the_streams_share_a_demand_and_a_few_have_their_own() -> None:
    watched = streams.watched(1000)
    names = [one.reference.name for one in watched]
    assert len(set(names)) == len(names) == 1000
    demanded = [one.demanded for one in watched if one.demanded]
    assert demanded.count(streams.SHARED) == 500
    assert len(set(demanded)) == 11
    for one in watched:
        whose = ScaledObject(one.reference.namespace, one.reference.name)
        spec = trigger.parse(whose, dict(one.reference.scalerMetadata), access())
        assert (spec.demand is not None) == bool(one.demanded)


BUSY, ASLEEP = streams.watched(4)[-1], streams.watched(4)[0]


@pytest.mark.parametrize(
    ("watched", "said", "trouble", "message"),
    [
        (BUSY, [90.0, 95.0], "", "2 pushes about a busy workload"),
        (BUSY, [], "", "0 pushes about a busy workload"),
        (ASLEEP, [99.0], "", "active 1.0 s before the demand"),
        (ASLEEP, [101.0], "its stream ended", "its stream ended"),
    ],
    ids=["twice", "never", "early", "ended"],
)
def test_a_stream_that_says_something_wrong_fails_the_benchmark(
    watched: Watched, said: list[float], trouble: str, message: str
) -> None:
    right = Stream(BUSY, [90.0]), Stream(ASLEEP, [101.0])
    streams.check(right, rises_at=100)
    with pytest.raises(ServerError, match=message):
        streams.check([*right, Stream(watched, said, trouble)], rises_at=100)


async def test_what_is_measured_about_streams_is_a_right_answer(tmp_path: Path) -> None:
    held = await streams.measure(tmp_path, 20, seconds=6, settle_seconds=4)
    assert held.scaler.queries > held.without.queries == 0
    assert held.bare.seconds > 0
