"""Strategies for clusters: names that Kubernetes cuts, siblings, copies."""

from collections.abc import Iterable
from dataclasses import replace

from hypothesis import strategies as st

from keda_gpu_scaler.spec.spec import Signal
from keda_gpu_scaler.spec.workload import Kind
from tests.support import naming
from tests.support.clusters import (
    Cluster,
    Copy,
    Gpu,
    Node,
    Owner,
    Pod,
    Question,
    Workload,
    controllers,
)
from tests.support.pages import PAGES

SIBLINGS = (
    "-canary", "-b", "-9c", "-b8", "-2", "-0", "2", ".b", "-predictor", "-default", "-29123456",
    "-7b6667bd9", "-00001-deployment", "-worker",
)  # fmt: skip
"""What other owners are called beside one: hash characters and numbers of pod names among them."""
SIGNALS = (Signal.UTILIZATION, Signal.UTILIZATION, *(Signal(s) for s in ("memory", "power")))
SIGNALS += (Signal.MEMORY_USED,)
KINDS = (*Kind, *[Kind.DEPLOYMENT] * 6, *[Kind.DAEMON_SET, Kind.STATEFUL_SET, Kind.JOB] * 2)
"""Most owners are of four kinds."""
KNOWN = (False, False, True)
"""Whether there is a kube-state-metrics: without, everything rests on names."""
_INTERVALS = (15, 30)
_PERCENTS = st.integers(0, 69)
"""For a full pod more is asked than it shows."""


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """A cluster of one or two namespaces with up to four workloads on up to three nodes."""
    signal = draw(st.sampled_from(SIGNALS))
    workloads = draw(_workloads())
    nodes = tuple(
        draw(_nodes(signal, number, workloads)) for number in range(draw(st.integers(1, 3)))
    )
    taken = {node.exporter for node in nodes}
    pods: dict[tuple[int, str], Pod] = {}
    for workload in workloads:
        for name in draw(_pod_names(workload)):
            key = workload.namespace, name
            if key not in pods and key not in taken:
                pods[key] = draw(_pods(workload, name, nodes, len(pods)))
    cluster = Cluster(signal, nodes, tuple(pods.values()), (), draw(st.sampled_from(KNOWN)))
    asked = [one for one in workloads if cluster.pods_of(one) and cluster.can_tell(one)]
    questions = tuple(draw(_questions(workload)) for workload in asked)
    return Cluster(signal, nodes, cluster.pods, questions, cluster.has_state_metrics)


@st.composite
def _workloads(draw: st.DrawFn) -> list[Workload]:
    """Owners of names that have something to do with each other."""
    lengths = draw(st.sampled_from([(1, 12), (1, 63), (40, 70)]))
    first = draw(naming.names(*lengths))
    siblings = st.sampled_from(SIBLINGS).map(first.__add__)
    twins = st.sampled_from([first, f"{first[:60].rstrip('-.')}x"])
    some = st.lists(siblings | siblings | twins | naming.names(*lengths), min_size=1, max_size=3)
    names = [first, *draw(some)]
    kinds = [draw(st.sampled_from(KINDS)) for _ in names]
    spaces = [draw(st.sampled_from([0, 0, 0, 0, 1])) for _ in names]
    found = (Workload(*one) for one in zip(spaces, kinds, names, strict=True))
    return _of_their_own(dict.fromkeys(found))


def _of_their_own(workloads: Iterable[Workload]) -> list[Workload]:
    """Leave out those whose objects would have names that others have taken."""
    taken: set[tuple[int, Owner]] = set()
    found: list[Workload] = []
    for one in workloads:
        objects = {(one.namespace, owner) for owner in controllers(one)}
        if taken.isdisjoint(objects):
            taken |= objects
            found.append(one)
    return found


@st.composite
def _pod_names(draw: st.DrawFn, workload: Workload) -> list[str]:
    if workload.kind is not Kind.LEADER_WORKER_SET:
        return draw(st.lists(naming.pods(workload.kind, workload.name), min_size=1, max_size=3))
    groups = draw(
        st.lists(st.tuples(st.integers(0, 12), st.integers(0, 2)), min_size=1, max_size=2)
    )
    return [
        f"{workload.name}-{group}" + (f"-{worker}" if worker else "")
        for group, workers in groups
        for worker in range(workers + 1)
    ]


@st.composite
def _nodes(draw: st.DrawFn, signal: Signal, number: int, workloads: list[Workload]) -> Node:
    fitting = [name for name, page in PAGES.items() if signal in page.writes]
    interval = draw(st.sampled_from(_INTERVALS))
    phases = st.integers(0, interval - 1)
    main = Copy(draw(st.sampled_from(fitting)), f"job-{number}", draw(st.booleans()), draw(phases))
    copies = [main]
    more = draw(st.sampled_from(["", "", "replica", "job", "rival"]))
    if more == "replica":
        copies = [replace(main, replica="a"), replace(main, replica="b", phase=draw(phases))]
    elif more == "job":
        copies.append(Copy(main.page, f"again-{number}", draw(st.booleans()), draw(phases)))
    elif more == "rival":
        is_dcgm = not PAGES[main.page].rank
        others = [name for name in fitting if bool(PAGES[name].rank) == is_dcgm]
        if others:
            rival = draw(st.sampled_from(others))
            copies.append(Copy(rival, f"rival-{number}", draw(st.booleans()), draw(phases)))
    near = draw(st.sampled_from(workloads))
    own = draw(naming.pods(near.kind, near.name))
    exporter = near.namespace, draw(st.sampled_from([f"exporter-{number}", own]))
    return Node(interval, tuple(copies), exporter)


@st.composite
def _pods(
    draw: st.DrawFn, workload: Workload, name: str, nodes: tuple[Node, ...], number: int
) -> Pod:
    place = draw(st.integers(0, len(nodes) - 1))
    sliced = all(copy.format.slice is not None for copy in nodes[place].copies)
    parts = [""]
    if sliced and draw(st.booleans()):
        parts = ["1", "2"][: draw(st.integers(1, 2))]
    boards = range(draw(st.integers(1, 3)))
    gpus = tuple(
        Gpu(f"GPU-{number}-{board}", board, part, draw(_PERCENTS))
        for board in boards
        for part in parts
    )
    return Pod(workload, name, place, gpus)


def _questions(workload: Workload) -> st.SearchStrategy[Question]:
    return st.builds(
        Question,
        st.just(workload),
        st.sampled_from(["sum", "average", "max", "p95"]),
        st.sampled_from(["average", "max", "sum"]),
        st.sampled_from([None, 15, 30, 60, 90, 120]),
    )
