"""What the rows mean that answer `kube_state.question`. Pure."""

from collections import defaultdict
from collections.abc import Iterable, Mapping

from keda_gpu_scaler import kube_state
from keda_gpu_scaler.evidence import TIME_STEP_SECONDS, Evidence, PodKey, Statement
from keda_gpu_scaler.observation import Row, Target
from keda_gpu_scaler.owners import NOBODY
from keda_gpu_scaler.spec import Owner


def evidence(rows: Iterable[Row]) -> Evidence:
    """Return what the rows of `question` say."""
    by_stat: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_stat[row.labels.get(kube_state.STAT, "")].append(row)
    owners = {_named(row, kube_state.LINKS): _owner(row.labels) for row in by_stat["owner"]}
    said = {
        stat: {_key(row): row.points[0][1] for row in by_stat[stat]}
        for stat in ("created", "ready", "since", "lately", "once", "deleting", "gpu")
    }
    phases = {_key(row): row.labels.get("phase", "") for row in by_stat["phase"]}
    return Evidence(
        pods={
            key: _statement(key, _owners(key, owner, owners), said, phases.get(key, "Running"))
            for key, owner in _controllers(by_stat["pod"]).items()
        },
        without_pods=frozenset(_named(row, kube_state.COUNTS) for row in by_stat["empty"]),
        covered=frozenset(_key(row)[0] for row in [*by_stat["covered"], *by_stat["pod"]]),
        scrapes={_target(row): row.points[0][1] for row in by_stat["scraped"]},
        settled={
            _target(row): kube_state.SETTLED_SECONDS / row.points[0][1]
            for row in by_stat["settled"]
        },
        down=frozenset(map(_target, by_stat["down"])),
    )


def _statement(
    key: PodKey,
    owners: frozenset[Owner],
    said: Mapping[str, Mapping[PodKey, float]],
    phase: str,
) -> Statement:
    ready, since = _ready(said["ready"].get(key), phase), said["since"].get(key)
    return Statement(
        owners=owners,
        created_at=said["created"].get(key),
        ready=ready,
        ready_at=since + TIME_STEP_SECONDS if ready and since is not None else None,
        lately=key in said["lately"],
        once_ready=key in said["once"],
        ended=phase in {"Succeeded", "Failed"} or key in said["deleting"],
        asks_gpu=key in said["gpu"],
    )


def _ready(said: float | None, phase: str) -> bool | None:
    """A pod that no node has yet is not Ready, and has no row that says so."""
    if said is None:
        return False if phase == "Pending" else None
    return said == 1


def _controllers(rows: Iterable[Row]) -> dict[PodKey, Owner]:
    """Return each pod with the owner that controls it; other owners have rows as well."""
    found: dict[PodKey, Owner] = {}
    for row in rows:
        controls = row.labels.get(kube_state.IS_CONTROLLER) == "true"
        if controls or _key(row) not in found:
            found[_key(row)] = _owner(row.labels) if controls else NOBODY
    return found


def _owners(
    key: PodKey, owner: Owner, links: Mapping[tuple[str, Owner], Owner]
) -> frozenset[Owner]:
    if not owner.name:
        return frozenset()
    above = links.get((key[0], owner))
    return frozenset({owner} if above is None else {owner, above})


def _owner(labels: Mapping[str, str]) -> Owner:
    return Owner(labels.get("owner_kind", ""), labels.get("owner_name", ""))


def _named(row: Row, kinds_by_label: Mapping[str, tuple[str, str]]) -> tuple[str, Owner]:
    """Return the namespace and the object that a row about an owner is of."""
    label = next((label for label in kinds_by_label if row.labels.get(label)), "")
    kind, _ = kinds_by_label.get(label, ("", ""))
    return row.labels.get("namespace", ""), Owner(kind, row.labels.get(label, ""))


def _key(row: Row) -> PodKey:
    return row.labels.get("namespace", ""), row.labels.get("pod", "")


def _target(row: Row) -> Target:
    return Target(row.labels.get("job", ""), row.labels.get("instance", ""))
