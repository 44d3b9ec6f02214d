"""Scale targets of which a replica is a group of pods: the labels of the pods that say which. Pure.

The selector of such a target is made for the HPA, and may select one pod of each group. So only its
requirements on the labels that say whose a pod is are used: they select every pod.
"""

from collections.abc import Mapping
from typing import NamedTuple


class Grouped(NamedTuple):
    """The labels of the pods of one kind of scale target."""

    whose: tuple[str, ...]
    """They say together whose a pod is."""
    groups: tuple[tuple[str, ...], ...]
    """They name its group together, for each way in which groups are made. A pod is in a group of
    the first way of which it has a label."""
    alone: tuple[str, ...] = ()
    """A pod in no group that has one of these is a replica by itself."""


_CLIQUES = ("grove.io/podcliquescalinggroup", "grove.io/podcliquescalinggroup-replica-index")
_LEADERS = ("leaderworkerset.sigs.k8s.io/name", "leaderworkerset.sigs.k8s.io/group-index")
GROUPED: Mapping[str, Grouped] = {
    "dynamographdeploymentscalingadapters.nvidia.com": Grouped(
        ("nvidia.com/dynamo-graph-deployment-name", "nvidia.com/dynamo-component"),
        (_CLIQUES, _LEADERS),
        ("grove.io/podclique", "pod-template-hash"),
    ),
    "inferencesets.kaito.sh": Grouped(
        ("inferenceset.kaito.sh/created-by",), (("kaito.sh/workspace",),)
    ),
    "stormservices.orchestration.aibrix.ai": Grouped(("storm-service-name",), (("roleset-name",),)),
    "disaggregatedsetrolescalers.disaggregatedset.x-k8s.io": Grouped(
        ("disaggregatedset.x-k8s.io/name", "disaggregatedset.x-k8s.io/role"), (_LEADERS,)
    ),
    "podcliquescalinggroups.grove.io": Grouped(_CLIQUES[:1], (_CLIQUES,)),
    "podcliquesets.grove.io": Grouped(
        ("app.kubernetes.io/managed-by", "app.kubernetes.io/part-of"),
        (("app.kubernetes.io/part-of", "grove.io/podcliqueset-replica-index"),),
    ),
}
"""By the target's resource, as kubectl calls it. Of other targets each pod is a replica."""


def group(grouped: Grouped, pod: str, labels: Mapping[str, str]) -> str | None:
    """Return the name of a pod's group, or of the pod if it is alone; None: no label says it."""
    for keys in grouped.groups:
        values = [labels.get(key, "") for key in keys]
        if any(values):
            return "-".join(values) if all(values) else None
    return pod if any(key in labels for key in grouped.alone) else None
