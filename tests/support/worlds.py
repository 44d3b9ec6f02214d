"""Small worlds of exporters and pods, observed at any instant as a source would show them."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from keda_gpu_scaler.snapshot.observation import Observation, Series, Target

STEP = 15.0
SPAN = 300.0
NODE = Target("dcgm", "10.0.0.1:9400")
OTHER_NODE = Target("dcgm", "10.0.0.2:9400")
EVER = ((float("-inf"), float("inf")),)

Spans = tuple[tuple[float, float], ...]
"""Times from (included) until (excluded)."""


@dataclass(frozen=True, slots=True)
class WorldPod:
    """One pod: where it is, when it reports, and what its GPUs show."""

    name: str
    value: float = 90.0
    target: Target = NODE
    there: Spans = EVER
    namespace: str = "ml"
    gpus: tuple[str, ...] = ()
    averaged: bool = False
    values: Mapping[str, float] = field(default_factory=dict)
    """Values of single GPUs, where they differ from `value`."""

    def series(self, world: "World", instants: tuple[float, ...]) -> list[Series]:
        """Return the series that a source shows at these instants."""
        shown = tuple(
            t for t in instants if within(t, self.there) and world.is_good(self.target, t)
        )
        names = self.gpus or (f"GPU-{self.name}",)
        return [
            Series(
                self.namespace,
                self.name,
                gpu,
                self.target,
                present=shown,
                times=shown,
                values=tuple(self.values.get(gpu, self.value) for _ in shown),
                averaged=self.averaged,
                shows_free_gpus=world.shows_free_gpus,
            )
            for gpu in names
            if shown
        ]


@dataclass(frozen=True, slots=True)
class World:
    """Pods, and when their targets are scraped well."""

    pods: tuple[WorldPod, ...]
    targets: Mapping[Target, Spans] = field(default_factory=lambda: {NODE: EVER})
    shows_free_gpus: bool = False
    """Its exporters show GPUs without a pod as well."""

    def is_good(self, target: Target, instant: float) -> bool:
        """Tell whether the latest scrape of a target was good at this instant."""
        return within(instant, self.targets.get(target, ()))

    def observed(self, at: float, *, step: float = STEP, span: float = SPAN) -> Observation:
        """Return what a source shows at `at`."""
        count = int(span // step)
        instants = tuple(at - step * back for back in reversed(range(count)))
        return Observation(
            instants=instants,
            series=tuple(one for pod in self.pods for one in pod.series(self, instants)),
            good_scrapes={
                target: {t: t for t in instants if within(t, spans)}
                for target, spans in self.targets.items()
                if any(within(t, spans) for t in instants)
            },
            absence_known=True,
        )


def within(instant: float, spans: Spans) -> bool:
    return any(begin <= instant < end for begin, end in spans)


def until(end: float) -> Spans:
    """Return the spans of something that ends."""
    return ((float("-inf"), end),)


def since(begin: float) -> Spans:
    """Return the spans of something that begins."""
    return ((begin, float("inf")),)
