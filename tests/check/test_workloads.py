"""What texts say of workloads: who scales one, and how many replicas are behind a Service."""

from collections.abc import Iterator

import pytest

from keda_gpu_scaler.check.findings import Position
from keda_gpu_scaler.check.nodes import Block, Entry, Scalar
from keda_gpu_scaler.check.objects import Manifest, Terms
from keda_gpu_scaler.check.workloads import CANDIDATES_LIMIT, World
from tests.check.cases import changed, found, text

SERVICE = text("cluster-ip-address", "fail")
HEADED = SERVICE.replace("  # finds cluster-ip-address", "")
SHARED = text("shared-workload", "fail")
HPA = "kind: HorizontalPodAutoscaler\nmetadata:\n  name: bert\n"


def rules(source: str) -> set[str]:
    return {place.rule for place in found(source)}


def named(name: str) -> str:
    advanced = f"  advanced: {{horizontalPodAutoscalerConfig: {{name: {name}}}}}\n"
    return changed(SHARED, ("  triggers:\n", f"{advanced}  triggers:\n"))


@pytest.mark.parametrize(
    ("source", "is_of_keda"),
    [
        (SHARED, False),
        (changed(SHARED, (HPA, HPA.replace("bert", "keda-hpa-bert"))), True),
        (named("bert"), True),
        (named("another"), False),
        (
            named("bert").replace(
                "  namespace: inference\nspec:\n  scaleTargetRef:\n    api",
                "  namespace: another\nspec:\n  scaleTargetRef:\n    api",
            ),
            True,
        ),
        (changed(SHARED, (HPA, f"{HPA}  ownerReferences: [{{kind: ScaledObject}}]\n")), True),
        (changed(SHARED, (HPA, f"{HPA}  ownerReferences: [{{kind: Application}}]\n")), False),
    ],
)
def test_an_hpa_of_kedas_own_is_no_second_one(source: str, is_of_keda: bool) -> None:  # noqa: FBT001 - a row of the table
    assert rules(source) == (set() if is_of_keda else {"shared-workload"})


def test_a_service_is_compared_with_few_workloads_of_its_rarest_label() -> None:
    workload = HEADED.rpartition("---\n")[2].replace("replicas: 2", "replicas: 1")
    labels = "        app: keda-gpu-scaler\n"
    assert labels in workload
    stranger = workload.replace(labels, "        app: another\n")
    base = HEADED.rpartition("---\n")[0]
    many = CANDIDATES_LIMIT + 10
    assert rules("---\n".join([base, *[stranger] * many, workload])) == set()
    selector = "    app: keda-gpu-scaler\n"
    two = changed(base, (selector, f"{selector}    tier: a\n"))
    other = workload.replace(labels, f"{labels}        tier: b\n")
    right = workload.replace(labels, f"{labels}        tier: a\n")
    assert rules("---\n".join([two, *[other] * many, right])) == set()
    both = workload.replace(labels, f"{labels}        tier: a\n        x: b\n")
    three = changed(two, ("    tier: a\n", "    tier: a\n    x: y\n"))
    wanted = both.replace("x: b", "x: y")
    alike = [both, wanted.replace("tier: a", "tier: b")] * many
    assert rules("---\n".join([three, *alike, wanted])) == {"cluster-ip-address"}


def test_a_service_is_looked_for_once() -> None:
    looked: list[str] = []

    class Selector(dict[str, Entry]):
        def __iter__(self) -> Iterator[str]:
            looked.append("")
            return super().__iter__()

    place = Position(1, 1)
    selector = Block(place, Selector(app=Entry(place, Scalar(place, "x"))))
    spec = Block(place, {"selector": Entry(place, selector)})
    service = Manifest("one.yaml", Block(place, {"spec": Entry(place, spec)}), Terms())
    world = World([service])
    assert [world.replicas_behind(service) for _ in range(3)] == [None] * 3
    assert len(looked) == 1
