"""A request says which ScaledObject its trigger belongs to; each trigger is parsed once."""

import contextlib
import tracemalloc
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors
from keda_gpu_scaler.pb import externalscaler_pb2 as pb
from keda_gpu_scaler.service import requests
from keda_gpu_scaler.telemetry import facts
from keda_gpu_scaler.trigger.access import EVERY_NAMESPACE, Access, Namespaces
from tests.service.harness import OBJECT, TRIGGER, reference


def triggers() -> requests.Triggers:
    return requests.Triggers(Access({"default": EVERY_NAMESPACE}))


def test_a_reference_names_the_scaled_object_and_carries_its_trigger() -> None:
    trigger = triggers().read(reference())

    assert trigger.scaled_object == OBJECT
    assert trigger.spec.threshold == 70


def test_the_same_trigger_is_parsed_once() -> None:
    known = triggers()

    assert known.read(reference()).spec is known.read(reference()).spec


def test_a_changed_trigger_is_parsed_anew() -> None:
    known = triggers()

    assert known.read(reference()).spec.threshold == 70
    assert known.read(reference(threshold="80")).spec.threshold == 80


def test_each_call_about_a_wrong_trigger_is_stated_and_each_new_trigger_once() -> None:
    stated: list[facts.Fact] = []
    known = requests.Triggers(Access({"default": EVERY_NAMESPACE}), stated.append)
    for _ in range(2):
        with pytest.raises(errors.SpecError):
            known.read(reference(treshold="70"))
    for _ in range(2):
        known.read(reference())
    *refused, changed = stated
    assert [type(fact) for fact in refused] == [facts.TriggerRefused] * 2
    assert "did you mean threshold?" in str(refused[0])
    assert changed == facts.TriggerChanged(OBJECT)


def test_the_same_strings_of_another_object_are_another_trigger() -> None:
    known = triggers()
    here = known.read(reference())
    there = known.read(
        pb.ScaledObjectRef(name="bert-scaler", namespace="x", scalerMetadata=TRIGGER)
    )

    assert here.spec.pods.namespace == "ml"
    assert there.spec.pods.namespace == "x"


def test_what_is_kedas_own_makes_no_other_trigger() -> None:
    known = triggers()
    huge = reference(scalerAddress="x" * 100_000)

    assert known.read(huge).spec == known.read(reference(scalerAddress="y")).spec


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=4), max_size=9), st.data())
def test_a_trigger_is_found_again_in_whatever_order_its_strings_come(
    more: dict[str, str], data: st.DataObject
) -> None:
    strings = [*more.items(), *TRIGGER.items()]
    shuffled = data.draw(st.permutations(strings))
    known = triggers()
    read: list[Any] = []
    for entries in (strings, shuffled):
        # As another client may write them: one after the other, in this order.
        fields = (pb.ScaledObjectRef(scalerMetadata={key: text}) for key, text in entries)
        sent = b"".join(field.SerializeToString() for field in fields)
        sent += pb.ScaledObjectRef(name="bert-scaler", namespace="ml").SerializeToString()
        try:
            read.append(known.read(pb.ScaledObjectRef.FromString(sent)))
        except errors.SpecError as error:
            read.append(str(error))
    assert read[0] == read[1]
    assert isinstance(read[0], str) or read[0] is read[1]


@pytest.mark.slow
def test_triggers_are_kept_in_bounded_memory() -> None:
    """A text with one emoji takes four bytes for each of its characters."""
    known = triggers()
    tracemalloc.start()
    try:
        for number in range(2_000):
            query = f'sum(x{{a="{number}\U0001f600{"b" * 1_900}"}})'
            known.read(reference(demandQuery=query))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 40 * 2**20


@pytest.mark.slow
def test_a_million_short_strings_are_kept_as_a_hash() -> None:
    known = triggers()
    tracemalloc.start()
    try:
        for shift in range(3):
            strings = {f"{number + shift:x}": "" for number in range(100_000)}
            with pytest.raises(errors.SpecError):
                known.read(reference(**strings))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 40 * 2**20


def test_resolved_environment_keys_pass() -> None:
    from_env = pb.ScaledObjectRef(
        name="bert-scaler",
        namespace="ml",
        scalerMetadata={"workload": "bert", "thresholdFromEnv": "66"},
    )

    assert triggers().read(from_env).spec.threshold == 66


def test_kedas_own_keys_pass() -> None:
    trigger = triggers().read(reference(scalerAddress="scaler:6000", enableTLS="true"))

    assert trigger.spec.threshold == 70


class Counted(dict[str, Namespaces]):
    """Sources that count how often a trigger is compared with them."""

    asked = 0

    def items(self) -> Any:  # noqa: ANN401 - as a dictionary has them
        """Return the sources."""
        self.asked += 1
        return super().items()


@pytest.mark.parametrize("threshold", ["70", "none"])
def test_a_trigger_that_is_refused_is_parsed_as_seldom_as_one_that_is_not(threshold: str) -> None:
    sources = Counted(default=EVERY_NAMESPACE)
    known = requests.Triggers(Access(sources))
    for _ in range(3):
        with contextlib.suppress(errors.SpecError):
            known.read(reference(threshold=threshold))

    assert sources.asked == 1


def test_a_target_that_old_keda_rounds_is_stated_beside_the_loads() -> None:
    """Old KEDA would take a fifth of the replicas: 1 request per second each, and not 0.2."""
    stated: list[facts.Fact] = []
    known = requests.Triggers(Access({"default": EVERY_NAMESPACE}), stated.append)
    known.read(reference(threshold="1.4", demandQuery="load", demandThreshold="0.2"))
    known.read(reference(threshold="2"))
    first, second = stated
    assert isinstance(first, facts.TriggerChanged)
    assert [reason.partition(": ")[2] for reason in first.rounded] == [
        "for gpu-utilization they use 1, not 1.4",
        "for gpu-demand they use 1, not 0.2",
    ]
    assert second == facts.TriggerChanged(OBJECT)


@pytest.mark.parametrize(
    ("broken", "named"),
    [
        (pb.ScaledObjectRef(), ["namespace ''", "name ''"]),
        (pb.ScaledObjectRef(name="bert"), ["namespace ''"]),
        (pb.ScaledObjectRef(namespace="ml"), ["name ''"]),
        (pb.ScaledObjectRef(name="a\nb", namespace="ml"), [r"name 'a\nb'"]),
        (pb.ScaledObjectRef(name="a" * 254, namespace="ml"), ["name 'aaa"]),
        (pb.ScaledObjectRef(name="bert", namespace='"}'), ["namespace '\"}'"]),
    ],
)
def test_a_reference_without_names_is_refused_and_each_is_named(
    broken: Any,  # noqa: ANN401 - a message
    named: list[str],
) -> None:
    with pytest.raises(errors.RequestError) as caught:
        triggers().read(broken)

    assert [text for text in named if text not in str(caught.value)] == []


def test_a_metrics_request_without_a_reference_is_refused() -> None:
    with pytest.raises(errors.RequestError, match="scaledObjectRef is missing"):
        requests.reference_of(pb.GetMetricsRequest(metricName="gpu-utilization"))


@given(st.from_regex(r"s[0-9]{1,4}-", fullmatch=True))
def test_the_triggers_metric_is_known_with_one_leaked_prefix(prefix: str) -> None:
    names = ["gpu-utilization", "gpu-demand", f"{prefix}gpu"]
    for name in names:
        assert requests.metric_name(name, names) == name
    assert requests.metric_name(f"{prefix}gpu-utilization", names) == "gpu-utilization"
    assert requests.metric_name(f"{prefix}gpu-demand", names) == "gpu-demand"


@pytest.mark.parametrize(
    "requested", ["", "s0-", "gpu", "s0-s0-gpu-utilization", "S0-gpu-utilization", "x" * 5000]
)
def test_another_metric_is_refused_with_the_expected_name(requested: str) -> None:
    with pytest.raises(errors.RequestError, match="expected 'gpu-utilization'") as caught:
        requests.metric_name(requested, ["gpu-utilization"])

    assert len(str(caught.value)) < 200


def test_a_source_is_named_only_by_the_namespaces_it_is_for() -> None:
    gold = Namespaces(frozenset({"web"}))
    access = Access({"default": EVERY_NAMESPACE, "gold": gold})
    theirs = requests.Triggers(access)
    request = reference(source="gold")
    with pytest.raises(errors.SpecError) as refused:
        theirs.read(request)
    unknown = reference(source="cold")
    with pytest.raises(errors.SpecError) as missing:
        theirs.read(unknown)

    # A namespace that may not use a source does not learn that it exists.
    assert str(refused.value) == str(missing.value).replace("cold", "gold")
    assert "expected one of default;" in str(refused.value)
    request.namespace = "web"
    assert theirs.read(request).spec.source == "gold"


def test_the_pods_of_another_namespace_are_measured_where_that_is_allowed() -> None:
    request = reference(namespace="web")
    with pytest.raises(errors.SpecError, match="KEDA_GPU_SCALER_OTHER_NAMESPACES"):
        triggers().read(request)
    access = Access({"default": EVERY_NAMESPACE}, Namespaces(frozenset({"web"})))
    assert requests.Triggers(access).read(request).spec.pods.namespace == "web"
