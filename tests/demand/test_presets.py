"""Claims about presets: their table, and what their PromQL gives on real servers' series."""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import promql_parser
import pytest

from keda_gpu_scaler.demand import presets
from keda_gpu_scaler.demand.presets import PRESETS, Preset
from keda_gpu_scaler.promql import policy
from keda_gpu_scaler.spec import workload
from keda_gpu_scaler.spec.workload import PodPattern
from testbed.prometheus import PrometheusServer
from testbed.series import Series
from tests.support.each_prometheus import ON_EVERY_SERVER
from tests.support.llm_servers import Scraped
from tests.support.prometheus_source import connected

OWNER = "llama"
"""The Deployment whose pods are read: the workload's, or the router's."""
PODS = ("llama-7b6667bd9-bcdf2", "llama-7b6667bd9-bcdf4")
STRANGERS = ("llama-canary-7b6667bd9-bcdf2", "llama-7b6667bd9", "mistral-7b6667bd9-bcdf2")
"""Pods of the same namespace that a prefix or a whole namespace would take as well."""

SHOWN: Mapping[str, Mapping[str, float]] = {
    "vllm-queue": {"vllm": 4, "vllm-v0": 4, "vllm-escaped": 4, "nim-1": 4},
    "vllm-running": {"vllm": 20, "vllm-v0": 20, "vllm-escaped": 20, "nim-1": 20},
    "vllm-requests": {"vllm": 24, "vllm-v0": 24, "nim-1": 24},
    "vllm-kv-cache": {"vllm": 0.37, "vllm-v0": 0.41, "vllm-escaped": 0.37, "nim-1": 0.37},
    "sglang-queue": {"sglang-0.4": 4, "sglang": 4, "sglang-escaped": 4},
    "sglang-running": {"sglang-0.4": 20, "sglang": 20, "sglang-escaped": 20},
    "sglang-requests": {"sglang-0.4": 24},
    "tgi-queue": {"tgi": 4},
    "tgi-requests": {"tgi": 24},
    "tei-queue": {"tei": 4},
    "triton-queue": {"triton": 4},
    "triton-trtllm-requests": {"triton-trtllm": 24},
    "knative-requests": {"knative": 24, "knative-1.19": 24, "knative-1.18": 24},
    "llm-d-epp-queue": {"llm-d-epp": 4, "llm-d-epp-1.5": 4},
    "llm-d-epp-running": {"llm-d-epp": 20, "llm-d-epp-1.5": 20, "llm-d-epp-1.0": 20},
    "llm-d-epp-requests": {"llm-d-epp": 24},
    "llm-d-epp-tokens": {"llm-d-epp": 14_000},
    "dynamo-requests": {"dynamo": 24, "dynamo-1.0": 24},
    "kthena-requests": {"kthena": 20},
    "aibrix-requests": {"aibrix": 20},
}
"""What a pod shows on each page: the number that the guide of the project adds up.

The guides: docs/source/use_cases/autoscaling-keda.rst and observability/prom-adapter.yaml of
vllm-project/production-stack; "Autoscale InferenceService with LLM metrics" of KServe;
"Autoscaling Workloads with KEDA and EPP Metrics" of llm-d, and its token-aware one; "Autoscaling"
of Dynamo; assets/tgi_grafana.json of TGI; "Pending Request Count (Queue Size)" of Triton's user
guide; README.md of triton-inference-server/tensorrtllm_backend."""
OTHERWISE_SHOWN = {"llm-d-epp-saturation", "vllm-router-rate", "envoy-ai-gateway-rate"}
SILENT = {
    "vllm-queue": ("tgi",),
    "tgi-requests": ("vllm",),
    "llm-d-epp-queue": ("llm-d-epp-1.0",),
    "llm-d-epp-requests": ("llm-d-epp-1.0",),
    "vllm-router-rate": ("llm-d-epp", "vllm-router-0.1.7"),
    "vllm-kv-cache": ("tgi",),
    "triton-trtllm-requests": ("triton",),
    "llm-d-epp-tokens": ("llm-d-epp-1.5", "llm-d-epp-idle"),
    "llm-d-epp-saturation": ("llm-d-epp-1.5", "llm-d-epp-idle"),
    "dynamo-requests": ("vllm",),
    "kthena-requests": ("aibrix",),
    "aibrix-requests": ("kthena",),
    "envoy-ai-gateway-rate": ("vllm-router",),
}
"""Pages that do not say what a preset asks: its demand is unknown there, and not 0.

The saturation of a pool without endpoints is shown, as 1."""


def asked(name: str, namespace: str) -> str:
    preset = PRESETS[name]
    model = "llama" if preset.needs_model else ""
    owner = workload.parse(OWNER, namespace)
    return presets.promql(preset, owner, owner, model)


async def numbers(server: PrometheusServer, texts: Iterable[str]) -> list[float | None]:
    """Ask one after the other, as the scaler does; None: there is no answer."""
    async with connected(server.url) as source:
        return [await source.number(text) for text in texts]


def noisy(page: str, namespace: str, *, is_exported: bool) -> list[Scraped]:
    """Return pods of the workload, one of them twice over, and pods that are not the workload's.

    Its second pod has twice the numbers.
    """
    return [
        *(
            Scraped(page, namespace, pod, times, is_exported=is_exported)
            for times, pod in enumerate(PODS, 1)
        ),
        Scraped(page, namespace, PODS[0], job="services"),
        *(
            Scraped(page, namespace, stranger, is_exported=either)
            for stranger in STRANGERS
            for either in (False, True)
        ),
        Scraped(page, f"{namespace}-b", PODS[0]),
    ]


async def write(server: PrometheusServer, *parts: Scraped) -> None:
    now = server.now()
    await server.write(series for part in parts for series in part.series(now))


@ON_EVERY_SERVER
async def test_a_preset_gives_the_sum_of_what_the_pods_of_the_workload_alone_show(
    prometheus: PrometheusServer,
) -> None:
    cases = {
        f"{preset}-{page}-{is_exported:d}": (preset, page, is_exported)
        for preset, pages in SHOWN.items()
        for page, is_exported in itertools.product(pages, (False, True))
    }
    for place, (_, page, is_exported) in cases.items():
        await write(prometheus, *noisy(page, place, is_exported=is_exported))
    texts = [asked(preset, place) for place, (preset, *_) in cases.items()]
    expected = [3 * SHOWN[preset][page] for preset, page, _ in cases.values()]
    assert await numbers(prometheus, texts) == pytest.approx(expected)


@ON_EVERY_SERVER
async def test_a_series_that_is_not_there_is_no_zero(prometheus: PrometheusServer) -> None:
    cases = [(name, page) for name, pages in SILENT.items() for page in pages]
    await write(prometheus, *(Scraped(page, f"{name}-{page}", PODS[0]) for name, page in cases))
    silent = [asked(name, f"{name}-{page}") for name, page in cases]
    nowhere = [asked(name, "nowhere") for name in PRESETS]
    assert await numbers(prometheus, [*silent, *nowhere]) == [None] * (len(cases) + len(PRESETS))


async def test_a_router_without_requests_is_known_to_have_none(
    prometheus: PrometheusServer,
) -> None:
    await write(
        prometheus,
        Scraped("llm-d-epp-idle", "idle", PODS[0]),
        Scraped("llm-d-epp-idle", "idle-b", PODS[0], is_exported=True),
    )
    names = [name for name, preset in PRESETS.items() if preset.idle]
    texts = [asked(name, place) for place in ("idle", "idle-b") for name in names]
    assert await numbers(prometheus, texts) == [0] * len(texts)


async def test_a_release_that_shows_a_number_under_two_names_counts_it_once_beside_an_older_pod(
    prometheus: PrometheusServer,
) -> None:
    older = Scraped("llm-d-epp-1.5", "update", PODS[1], times=2)
    await write(prometheus, Scraped("llm-d-epp", "update", PODS[0]), older)
    names = ("llm-d-epp-queue", "llm-d-epp-running", "llm-d-epp-requests")
    assert await numbers(prometheus, [asked(name, "update") for name in names]) == [12, 60, 72]


async def test_a_pod_that_two_layouts_show_counts_once(prometheus: PrometheusServer) -> None:
    collected = Scraped("vllm-escaped", "both", PODS[0], is_exported=True)
    await write(prometheus, Scraped("vllm", "both", PODS[0]), collected)
    assert await numbers(prometheus, [asked("vllm-requests", "both")]) == [24]


async def test_each_pod_of_a_group_of_sglang_shows_the_requests_of_the_group(
    prometheus: PrometheusServer,
) -> None:
    pods = ("llama-0", "llama-0-1", "llama-1", "llama-1-1")
    for place, is_exported in (("groups", False), ("groups-b", True)):
        await write(
            prometheus, *(Scraped("sglang", place, pod, is_exported=is_exported) for pod in pods)
        )
    groups = [workload.parse("lws/llama", place) for place in ("groups", "groups-b")]
    texts = [presets.promql(PRESETS["sglang-queue"], group, group) for group in groups]
    assert await numbers(prometheus, texts) == [8, 8]


def scrape(namespace: str, pod: str, now: float, *, job: str, down_for: float) -> Series:
    """Return `up` of a pod's target, which has been 0 for so long."""
    (one, *_) = Scraped("vllm", namespace, pod, job=job).series(now)
    labels = {key: one.labels[key] for key in ("namespace", "pod", "job", "instance")}
    points = [(now + second, float(second < -down_for)) for second in range(-900, 1, 15)]
    return Series("up", labels, points)


def ended(series: Series, ago: float) -> Series:
    """Return a series that Prometheus marks as gone, as after a scrape that failed."""
    points = [(at, None if at == ago else value) for at, value in series.samples if at <= ago]
    return Series(series.name, series.labels, points)


@ON_EVERY_SERVER
async def test_a_server_that_does_not_answer_its_scrape_makes_the_sum_unknown_and_not_smaller(
    prometheus: PrometheusServer,
) -> None:
    now = prometheus.now()
    first, second = PODS
    for place in ("busy", "twice", "gone"):
        await write(prometheus, Scraped("vllm", place, first))
        missed = Scraped("vllm", place, second).series(now)
        await prometheus.write(ended(one, now - 60) for one in missed)
        await prometheus.write([scrape(place, first, now, job="pods", down_for=-1)])
    for place in ("busy", "twice"):
        await prometheus.write([scrape(place, second, now, job="pods", down_for=60)])
    await write(prometheus, Scraped("vllm", "twice", second, job="services"))
    asked_of = [asked("vllm-requests", place) for place in ("busy", "twice", "gone")]
    assert await numbers(prometheus, asked_of) == [None, 48, 24]


MODELS: Mapping[str, Mapping[str, float | None]] = {
    "llm-d-epp-queue": {"llama": 4, "mistral": 0, "": 4},
    "dynamo-requests": {"llama": 20, "mistral": 4, "": 24, "misspelt": None},
    "kthena-requests": {"llama": 20, "mistral": 4, "misspelt": None},
    "aibrix-requests": {"llama": 20, "mistral": 4, "misspelt": None},
    "vllm-router-rate": {"llama": 0, "misspelt": None},
    "envoy-ai-gateway-rate": {"llama": 0, "llama-3.1-8b": None},
}
"""The demand of a model, as requests write its name."""


async def test_another_model_at_the_router_does_not_count(prometheus: PrometheusServer) -> None:
    await write(prometheus, Scraped("llm-d-epp", "models", PODS[0]))
    for page in ("vllm-router", "envoy-ai-gateway", "dynamo", "kthena", "aibrix"):
        await write(prometheus, Scraped(page, "models", PODS[1]))
    router, servers = workload.parse(OWNER, "models"), workload.parse("bert", "ml")
    texts = [
        presets.promql(PRESETS[name], router, servers, model)
        for name, models in MODELS.items()
        for model in models
    ]
    expected = [number for models in MODELS.values() for number in models.values()]
    assert await numbers(prometheus, texts) == expected


# Endpoints of a router

ONE, OTHER, STRANGER = (f"{pod}-rank-0" for pod in (*PODS, "llama-prefill-7b6667bd9-bcdf2"))
TOKENS = {ONE: 100, OTHER: 200, STRANGER: 400}
"""What a router shows of each endpoint, and goes on showing when it is gone."""
PRESENT: Mapping[str, tuple[Sequence[str], float | None]] = {
    "all": (tuple(TOKENS), 300),
    "one-gone": ((ONE, STRANGER), 100),
    "another-workloads": ((STRANGER,), None),
    "none": ((), None),
}
"""The endpoints that the router has, and the tokens that wait at those of the workload."""


async def test_a_series_of_an_endpoint_that_is_gone_or_of_another_workload_does_not_count(
    prometheus: PrometheusServer,
) -> None:
    now = prometheus.now()
    for place, (present, _) in PRESENT.items():
        router = {"namespace": place, "pod": PODS[0], "job": "pods"}
        for endpoint in present:
            labels = router | {"name": "llama", "model_server_endpoint": endpoint}
            await prometheus.write(
                [Series("llm_d_epp_per_endpoint_queue_size", labels, [(now, 3)])]
            )
        # Two producers count the same requests.
        await prometheus.write(
            Series(
                "llm_d_epp_inflight_tokens",
                router | {"endpoint_name": endpoint, "producer_name": producer},
                [(now, tokens)],
            )
            for endpoint, tokens in TOKENS.items()
            for producer in ("inflight", "inflight-decode")
        )
    given = await numbers(prometheus, [asked("llm-d-epp-tokens", place) for place in PRESENT])
    assert given == [tokens for _, tokens in PRESENT.values()]


@ON_EVERY_SERVER
async def test_saturation_is_that_of_the_workloads_endpoints_from_the_routers_fullest_pod(
    prometheus: PrometheusServer,
) -> None:
    """It is the mean of the pool, of which each pod of the router shows all endpoints."""
    await write(prometheus, Scraped("llm-d-epp", "one", PODS[0]))
    for place in ("two", "stale"):
        await write(prometheus, Scraped("llm-d-epp", place, PODS[0]))
        await write(prometheus, Scraped("llm-d-epp", place, PODS[1], times=2, is_exported=True))
    now = prometheus.now()
    labels = {"namespace": "stale", "pod": PODS[0], "job": "pods", "detector": "other"}
    name = "llm_d_epp_flow_control_stale_endpoints"
    await prometheus.write([Series(name, labels, [(now, 1)])])
    queries = [asked("llm-d-epp-saturation", place) for place in ("one", "two", "stale")]
    assert await numbers(prometheus, queries) == [2 * 1.2, 2 * 2.4, None]


Samples = list[tuple[float, float | None]]


class Counted(NamedTuple):
    """What a router's counter of one model showed, by seconds from now, and the rate of it."""

    points: Sequence[tuple[int, float]]
    rate: float | None
    missed: int | None = None
    """The second at which a scrape of the router was missed."""
    scraped_since: int = -900


RISES = {
    "two-a-second": Counted([(second, 2.0 * (second + 1000)) for second in range(-900, 1, 15)], 2),
    "the-first-of-all": Counted([(second, 1.0) for second in range(-45, 1, 15)], 1 / 60),
    "long-ago": Counted([(second, 1.0) for second in range(-300, 1, 15)], 0),
    "begun-anew": Counted(
        [(-90, 500), (-75, 500), (-60, 500), (-45, 1), (-30, 3), (0, 6)], rate=0.1
    ),
    "none-ever": Counted([], rate=None),
    "missed-a-minute-ago": Counted(
        [(second, 1e6) for second in range(-900, 1, 15)], rate=None, missed=-60
    ),
    "missed-before": Counted([(second, 1e6) for second in range(-900, 1, 15)], rate=0, missed=-75),
    "scraped-since": Counted(
        [(second, 1e6) for second in range(-45, 1, 15)], rate=None, scraped_since=-45
    ),
    "begun-after-a-router-was-scraped": Counted(
        [(second, 1.0) for second in range(-30, 1, 15)], 1 / 60, scraped_since=-75
    ),
}


COUNTERS = {
    "vllm-router-rate": (
        *("vllm:num_incoming_requests_total", "model"),
        Series("router_cpu_usage_percent", {}, []),
    ),
    "envoy-ai-gateway-rate": (
        *("gen_ai_server_request_duration_seconds_count", "gen_ai_original_model"),
        Series("target_info", {"service_name": "ai-gateway"}, []),
    ),
}
"""A rate's counter, its label for the model, and what its router shows from its start on."""


@ON_EVERY_SERVER
@pytest.mark.parametrize("preset", COUNTERS)
async def test_a_routers_counter_is_read_from_its_first_request_on(
    prometheus: PrometheusServer, preset: str
) -> None:
    name, label, always = COUNTERS[preset]
    now = prometheus.now()
    labels = {"pod": PODS[0], "job": "vllm-router-service"}

    def stored(points: Iterable[tuple[int, float]], missed: int | None) -> Samples:
        return [(now + second, None if second == missed else value) for second, value in points]

    for case, (points, _, missed, since) in RISES.items():
        here = labels | {"namespace": f"{preset}-{case}"}
        shown = stored([(second, 7.5) for second in range(since, 1, 15)], missed)
        await prometheus.write([Series(always.name, {**here, **always.labels}, shown)])
        if points:
            counted = stored(points, missed)
            await prometheus.write([Series(name, here | {label: "llama"}, counted)])
            await prometheus.write([Series(name, here | {label: "mistral"}, shown)])
    given = await numbers(prometheus, [asked(preset, f"{preset}-{case}") for case in RISES])
    for answer, (case, (_, rate, *_)) in zip(given, RISES.items(), strict=True):
        assert answer == (None if rate is None else pytest.approx(rate, abs=1e-6)), case


async def test_of_two_routers_one_whose_scrape_was_missed_makes_the_rate_unknown_and_not_smaller(
    prometheus: PrometheusServer,
) -> None:
    now = prometheus.now()
    for pod, missed in ((PODS[0], None), (PODS[1], -60)):
        labels = {"pod": pod, "job": "vllm-router-service", "namespace": "routers"}
        seconds = range(-900, 1, 15)
        rise = [(now + at, None if at == missed else 2.0 * (at + 1000)) for at in seconds]
        idle = [(now + at, None if at == missed else 7.5) for at in seconds]
        name = "vllm:num_incoming_requests_total"
        await prometheus.write([Series(name, labels | {"model": "llama"}, rise)])
        await prometheus.write([Series("router_cpu_usage_percent", labels, idle)])
    assert await numbers(prometheus, [asked("vllm-router-rate", "routers")]) == [None]


async def test_a_counter_under_another_spelling_has_not_begun_since(
    prometheus: PrometheusServer,
) -> None:
    now = prometheus.now()
    labels = {"pod": PODS[0], "job": "vllm-router-service", "namespace": "escaped"}
    before = [(now + at, 1e6) for at in range(-900, -30, 15)]
    since = [(now + at, 1e6 + 60) for at in range(-30, 1, 15)]
    for name, points in (
        ("vllm_num_incoming_requests_total", [*before, (now - 30, None)]),
        ("vllm:num_incoming_requests_total", since),
    ):
        await prometheus.write([Series(name, labels | {"model": "llama"}, points)])
    idle = [(now + at, 7.5) for at in range(-900, 1, 15)]
    await prometheus.write([Series("router_cpu_usage_percent", labels, idle)])
    assert await numbers(prometheus, [asked("vllm-router-rate", "escaped")]) == [1]


# The table


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_its_text_is_promql_that_names_the_pods_in_every_selector(preset: Preset) -> None:
    model = "llama" if preset.needs_model else ""
    owner = workload.parse("lws/llama", "ml")
    text = presets.promql(preset, owner, owner, model)
    promql_parser.parse(text)
    confined = policy.confined(text, policy.parsed_matchers('cluster="eu"'))
    assert confined.count('cluster="eu"') == text.count('="ml"')
    selectors = text.count("__name__")
    scrapes = text.count("up{namespace=")
    assert selectors + scrapes == text.count('="ml"')
    assert selectors + scrapes == text.count('_pod=~"llama-') + text.count(',pod=~"llama-')


def test_only_a_router_wakes_and_a_threshold_is_required_where_there_is_no_usual_one() -> None:
    for preset in PRESETS.values():
        assert bool(preset.needs_threshold) == (preset.threshold is None and not preset.wakes)
        assert preset.is_of_router or not (preset.idle or preset.wakes)


def test_a_model_is_quoted() -> None:
    router = workload.parse("router", "ml")
    text = presets.promql(PRESETS["vllm-router-rate"], router, router, 'a"} or vector(1) or {b="')
    assert 'model="a\\"} or vector(1) or {b=\\""' in text
    promql_parser.parse(text)


def test_a_pattern_of_the_users_own_says_which_pods() -> None:
    pods = PodPattern("ml", 'a|b-\\d+"')
    text = presets.promql(PRESETS["tgi-queue"], pods, pods)
    assert text.count('=~"a|b-\\\\d+\\""') == 5


def test_every_preset_is_read_from_a_page() -> None:
    assert SHOWN.keys() | OTHERWISE_SHOWN == PRESETS.keys()
