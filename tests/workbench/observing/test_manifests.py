"""Claims about the ScaledObjects that are observed, and about what of their files is refused."""

import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.telemetry.facts import ObserveRefused
from keda_gpu_scaler.workbench.check import FileTrigger
from keda_gpu_scaler.workbench.observing import read_triggers
from testbed.triggers import access

OURS = """\
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {name}
  namespace: ml
spec:
  scaleTargetRef:
    name: bert
  triggers:
    - type: {type}
      metadata:
        scalerAddress: keda-gpu-scaler.keda:6000
        workload: bert
        threshold: {threshold}
"""


def written(name: str = "bert", kind: str = "external", threshold: str = '"70"') -> str:
    return OURS.format(name=name, type=kind, threshold=threshold)


def reading(*texts: str) -> tuple[list[FileTrigger], list[ObserveRefused]]:
    return read_triggers({f"{number}.yaml": text for number, text in enumerate(texts)}, access())


def refused(*texts: str) -> list[tuple[int, str]]:
    triggers, refusals = reading(*texts)
    assert triggers == []
    return [(refusal.line, refusal.reason) for refusal in refusals]


@pytest.mark.parametrize("kind", ["external", "external-push"])
def test_a_scaled_object_as_it_is_written_for_keda_is_observed(kind: str) -> None:
    ((scaled_object, spec),), refusals = reading(written(kind=kind))
    assert scaled_object == ScaledObject("ml", "bert")
    assert (spec.workload, spec.threshold) == ("deployment/bert", 70)
    assert refusals == []


def test_whatever_else_a_chart_renders_is_passed_over() -> None:
    others = "apiVersion: v1\nkind: Service\nmetadata: {name: bert}\n---\n- 1\n"
    triggers, refusals = reading(
        f"{others}---\n{written()}---\n", written("other"), written("other")
    )
    assert [trigger.scaled_object.name for trigger in triggers] == ["bert", "other"]
    assert refusals == []


def test_several_triggers_of_one_object_are_observed_and_those_of_other_scalers_are_not() -> None:
    both = written() + textwrap.indent(
        textwrap.dedent(
            """\
            - type: cpu
              metadata: {value: "80"}
            - type: external
              metadata: {podPattern: "bert-.*", threshold: "60", metricName: second}
            """
        ),
        "    ",
    )
    triggers, _ = reading(both)
    assert [one.spec.metric_name for one in triggers] == ["gpu-utilization", "second"]


def test_a_mistake_is_named_with_its_key_and_line_and_hides_no_other_object() -> None:
    triggers, (refusal,) = reading(f"{written(threshold='seventy')}---\n{written('other')}")
    assert [trigger.scaled_object.name for trigger in triggers] == ["other"]
    assert (refusal.file, refusal.line) == ("0.yaml", 14)
    assert 'The scaler refuses threshold: "seventy". Expected ' in refusal.reason


@pytest.mark.parametrize(
    ("text", "line", "why"),
    [
        (written().replace("  namespace: ml\n", ""), 3, "metadata.namespace: not given; expected"),
        (written().replace("workload", "workloadFromEnv"), 13, "The value of workload is in"),
        (written().replace("external", "cpu"), 9, "none of its triggers is for this scaler: "),
        (written("B"), 1, "the ScaledObject's name"),
        ("a: [", 1, ""),
        (written() + "many: [" + "1, " * 500_000 + "1]\n", 1, "it has too many values"),
    ],
)
def test_what_cannot_be_observed_is_refused_where_it_is(text: str, line: int, why: str) -> None:
    (found,) = refused(text)
    assert why in found[1]
    assert found[0] == line or not why.startswith("metadata")


@given(st.text(max_size=300), st.integers(0, len(OURS)))
def test_no_text_is_more_than_refused(inserted: str, at: int) -> None:
    whole = written()
    triggers, refusals = reading(whole[:at] + inserted + whole[at:], written("other"))
    assert ScaledObject("ml", "other") in {trigger.scaled_object for trigger in triggers}
    assert all(refusal.line >= 1 for refusal in refusals)
