"""Rows of kube-state-metrics → what they say of pods, and of their owners. Pure."""

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace

from keda_gpu_scaler.query import kube_state_texts as texts
from keda_gpu_scaler.snapshot.evidence import Evidence, PodKey, PodStatement, Unschedulable
from keda_gpu_scaler.snapshot.observation import Row, scrape_times
from keda_gpu_scaler.spec.workload import NO_OWNER, Owner
from keda_gpu_scaler.times import TIME_STEP_SECONDS

MOST_REPLICAS = 2**31 - 1
"""A number of replicas in Kubernetes has 32 bits."""
_ROW_ALONE = ("lately", "once", "gpu", "device", "requests", "unschedulable")
"""The stats whose numbers say nothing: that there is a row says it."""


def read_evidence(rows: Iterable[Row], kinds: Collection[str] = ()) -> Evidence:
    """Return the evidence in the rows of `kube_state_text`; `kinds` of owners are listed.

    What a number would say is not known where it cannot be that number, such as NaN for a time.
    """
    by_stat: dict[str, list[Row]] = defaultdict(list)
    for row in rows:
        by_stat[row.labels.get(texts.STAT, "")].append(row)
    created = [row for row in by_stat["created"] if math.isfinite(_value(row))]
    by_stat["created"] = sorted(created, key=_value)  # the newest one is the last
    newest_uids = {_key(row): row.labels.get("uid") for row in by_stat["created"]}
    for stat in ("deleting", "phase", "ready", "since"):
        by_stat[stat] = [
            row
            for row in by_stat[stat]
            if newest_uids.get(_key(row)) in (None, row.labels.get("uid"))
        ]
    scrapes = {row.target: scrape_times(row.points) for row in by_stat["scraped"]}
    links = {_named(row): _owner(row.labels) for row in by_stat["owner"]}
    numbers = {
        stat: {
            _key(row): _value(row)
            for row in by_stat[stat]
            if stat in _ROW_ALONE or math.isfinite(_value(row))
        }
        for stat in ("created", "ready", "since", "deleting", *_ROW_ALONE)
    }
    devices: dict[PodKey, set[str]] = defaultdict(set)
    for row in by_stat["device"]:
        devices[_key(row)].add(row.labels.get("resource", ""))
    phases = {_key(row): row.labels.get("phase", "") for row in by_stat["phase"]}
    wanted = {
        _named(row): round(_value(row))
        for row in by_stat["wanted"]
        if 0 <= _value(row) <= MOST_REPLICAS
    }
    pods = {
        key: _statement(key, owner, links, numbers, phases.get(key, "Running"))
        for key, owner in _controllers(by_stat["pod"]).items()
    }
    # Nothing is known of when they ended.
    left = {
        key: PodStatement(owners=_owners_of(key, owner, links), ended=True, asks_gpu=None)
        for key, owner in _controllers(by_stat["left"]).items()
    }
    for key in devices.keys() & pods.keys():  # few
        pods[key] = replace(pods[key], devices=frozenset(devices[key]))
    # In a rollout that recreates, the count is 0 while the pods that are replaced still work.
    empty = {_named(row) for row in by_stat["replicas"] if _value(row) == 0}
    return Evidence(
        pods={**left, **pods},
        without_pods=frozenset(empty - wanted.keys()),
        covered=frozenset(_key(row)[0] for row in [*by_stat["covered"], *by_stat["pod"]]),
        wanted=wanted,
        owners=_owners(by_stat["replicas"], kinds),
        scrapes={target: max(times.values()) for target, times in scrapes.items() if times},
        stable_since={
            row.target: texts.SETTLED_SECONDS / _value(row)
            for row in by_stat["settled"]
            if 1 <= _value(row) < math.inf
        },
        down=frozenset(
            [
                *(row.target for row in by_stat["down"]),
                *(target for target, times in scrapes.items() if not times),
            ]
        ),
    )


def _owners_of(
    key: PodKey, owner: Owner, links: Mapping[tuple[str, Owner], Owner]
) -> frozenset[Owner]:
    above = links.get((key[0], owner))
    return frozenset(filter(None, (owner if owner.name else None, above)))


def _statement(
    key: PodKey,
    owner: Owner,
    links: Mapping[tuple[str, Owner], Owner],
    numbers: Mapping[str, Mapping[PodKey, float]],
    phase: str,
) -> PodStatement:
    ready: bool | None = None
    if (number := numbers["ready"].get(key)) in (0, 1):
        ready = number == 1
    elif phase == "Pending":  # a pod not yet on a node has no row for it
        ready = False
    since, created = numbers["since"].get(key), numbers["created"].get(key)
    unschedulable = None
    if created is not None and key in numbers["unschedulable"]:
        unschedulable = Unschedulable(max(0.0, created))
    is_known = (key[0], "") in numbers["requests"] and key not in numbers["device"]
    return PodStatement(
        owners=_owners_of(key, owner, links),
        created_at=created,
        ready=ready,
        ready_at=since + TIME_STEP_SECONDS if ready and since is not None else None,
        ready_recently=key in numbers["lately"],
        was_ready=key in numbers["once"],
        ended=phase in {"Succeeded", "Failed"} or key in numbers["deleting"],
        asks_gpu=key in numbers["gpu"] or (False if is_known else None),
        unschedulable=unschedulable,
    )


def _owners(rows: Iterable[Row], kinds: Collection[str]) -> dict[tuple[str, str], frozenset[str]]:
    """Return the names of all owners of each kind, in the namespaces that show any owner.

    Of another namespace it may not be allowed to list them.
    """
    names: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows:
        namespace, owner = _named(row)
        names[namespace, owner.kind].add(owner.name)
    return {
        (namespace, kind): frozenset(names.get((namespace, kind), ()))
        for namespace in {namespace for namespace, _ in names}
        for kind in kinds
    }


def _controllers(rows: Iterable[Row]) -> dict[PodKey, Owner]:
    """Return each pod with the owner that controls it; other owners have rows as well."""
    controllers: dict[PodKey, Owner] = {}
    for row in rows:
        controls = row.labels.get(texts.IS_CONTROLLER) == "true"
        if controls or _key(row) not in controllers:
            controllers[_key(row)] = _owner(row.labels) if controls else NO_OWNER
    return controllers


def _owner(labels: Mapping[str, str]) -> Owner:
    return Owner(labels.get("owner_kind", ""), labels.get("owner_name", ""))


def _named(row: Row) -> tuple[str, Owner]:
    label = next((label for label in texts.KINDS if row.labels.get(label)), "")
    owner = Owner(texts.KINDS.get(label, ""), row.labels.get(label, ""))
    return row.labels.get("namespace", ""), owner


def _value(row: Row) -> float:
    return row.values[0]


def _key(row: Row) -> PodKey:
    return row.labels.get("namespace", ""), row.labels.get("pod", "")
