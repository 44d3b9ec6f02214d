"""A metric is judged alike in a preset, in a user's PromQL and in KEDA's own trigger."""

import pytest

from tests.workbench.check.cases import (
    BY_DEMAND,
    RECIPE,
    STAYS,
    ZERO_COUNT,
    changed,
    found,
    key,
    report,
)

WAITING, RUNNING = "vllm:num_requests_waiting", "vllm:num_requests_running"
BUCKETS = "rate(vllm:e2e_request_latency_seconds_bucket[5m])"
SUMS = "rate(vllm:e2e_request_latency_seconds_sum[5m])"
COUNTS = "rate(vllm:e2e_request_latency_seconds_count[5m])"
MEMORY = "DCGM_FI_DEV_FB_USED / (DCGM_FI_DEV_FB_USED + DCGM_FI_DEV_FB_FREE)"
GROUPS = "leaderworkerset.x-k8s.io/v1"
POOL = "llm_d_epp_flow_control_pool_saturation"


def rules(source: str) -> set[str]:
    return {place.rule for place in found(source)}


def demand(query: str, threshold: str = "16", *more: str) -> str:
    """Return a ScaledObject that a demand alone scales."""
    return key(BY_DEMAND, f"demandQuery: '{query}'", f"demandThreshold: '{threshold}'", *more)


def own(query: str, threshold: str = "16") -> str:
    """Return a ScaledObject that a query of the user's scales."""
    given = changed(STAYS, ('"70"', f"'{threshold}'"))
    return key(given, f"query: '{query}'", "activationThreshold: '0'")


def kedas(query: str, threshold: str = "16", *more: str) -> str:
    """Return a ScaledObject that KEDA's own trigger scales."""
    (start, _, _) = RECIPE.partition("        query")
    return key(start, f"query: '{query}'", f"threshold: '{threshold}'", *more)


def beside(query: str, source: str = STAYS) -> str:
    """Return a ScaledObject with KEDA's own trigger beside that of the scaler."""
    return source + kedas(query)[kedas(query).index("    - type") :]


@pytest.mark.parametrize(
    ("rule", "query"),
    [
        *(
            ("demand-not-a-sum", query)
            for query in (
                f"avg({RUNNING})",
                "max(num_requests_running)",
                "max(te_queue_size)",
                f"100 * avg({RUNNING})",
                f"ceil(avg({RUNNING}) / 2)",
                f"clamp_min(max({RUNNING}), 1) or vector(3)",
                f"scalar(quantile(0.9, {RUNNING}))",
                f"avg by (model_name) ({RUNNING})",
                f"max without (instance, pod) ({RUNNING})",
                f"sum by (model_name) (max by (model_name) ({RUNNING}))",
                f"topk(1, {RUNNING})",
                f"sum({RUNNING}) / count({RUNNING})",
                f"sum({RUNNING}) / on () group_left () count(up)",
                f"sum({RUNNING}) / scalar(count(up))",
                f"sum({RUNNING}) / sum(kube_deployment_status_replicas)",
                f'sum({RUNNING}) / on () kube_deployment_spec_replicas{{deployment="bert"}}',
                f"sum(a) + avg({RUNNING})",
                f"a{f' * avg({RUNNING})' * 30}",
                f"0 < avg({RUNNING})",
                f"avg_over_time(avg({RUNNING})[5m:])",
                f"sum({SUMS}) / sum({COUNTS})",
                f"histogram_quantile(0.9, sum by (le) ({BUCKETS}))",
                f"histogram_quantile(0.9, {BUCKETS}) > 0",
                f"1 / sum({RUNNING})",
                f"{SUMS} / {COUNTS}",
                f"sum({SUMS} / {COUNTS})",
                f"histogram_avg({BUCKETS})",
                "avg(queue_time_seconds)",
                f"max({POOL})",
                f"sum({POOL})",
                "avg(in_flight)",
                "stddev(in_flight)",
                "sum(busy) / sum(slots)",
                f"100 * avg({MEMORY})",
                "sum(vllm:prompt_tokens_total)",
            )
        ),
        *(
            ("", query)
            for query in (
                f"sum({RUNNING})",
                f"sum({RUNNING}) / 16",
                f"sum by (model_name) ({RUNNING})",
                f"sum(max by (instance) ({RUNNING}))",
                "sum(avg by (pod) (DCGM_FI_DEV_GPU_UTIL) / 100) * 100",
                f"avg({RUNNING}) * count({RUNNING})",
                f"scalar(count({RUNNING})) * avg({RUNNING})",
                f"sum({RUNNING} / 16)",
                f"sum({RUNNING} / on (pod) vllm:max_num_seqs)",
                f"sum({RUNNING}) / avg(vllm:max_num_seqs)",
                f"sum({RUNNING}) / on () slots_of_a_replica",
                f"max_over_time(sum({RUNNING})[5m:])",
                f"max({POOL}) * count(llm_d_epp_per_endpoint_queue_size)",
                f"sum({SUMS})",
                "sum(histogram_count(rate(call_seconds[1m])))",
                "max(queue_length)",
                "max(dynamo_frontend_inflight_requests)",
                "max(kthena_router_active_downstream_requests)",
                "sum(te_queue_size) + sum(x)",
                "sum(rate(vllm:prompt_tokens_total[1m]))",
                f"sum({RUNNING} and on (pod) up == 1) or 0 * count(up)",
                f"sum({RUNNING} unless on (pod) draining)",
                "queue_length",
                "vector(3)",
                "time() % 7",
                "absent(up)",
                f"sum(-{RUNNING} * -1)",
            )
        ),
        *(
            ("several-elements", query)
            for query in (
                RUNNING,
                f"{RUNNING} + {WAITING}",
                f"sum by (pod) ({RUNNING})",
                f"avg without (engine) ({RUNNING})",
                f"{RUNNING} or vector(3)",
                f"topk(3, {RUNNING})",
                f'label_replace(sum by (pod) ({RUNNING}), "x", "$1", "pod", "(.*)")',
                f"{RUNNING} * on (pod) group_left () up",
                f"up * on (pod) group_right () {RUNNING}",
                f"{RUNNING} / on (pod) up",
            )
        ),
        ("queue-alone", f"sum({WAITING}) * 2"),
        ("queue-alone", "sum(tgi_queue_size) + sum(sglang:num_queue_reqs)"),
        ("queue-alone", 'sum({__name__=~"vllm:num_requests_(waiting)"})'),
        ("", f"sum({WAITING}) + sum({RUNNING})"),
        ("", 'sum({__name__=~"vllm:num_requests_(waiting|running)"})'),
        ("", "sum(queue_length)"),
    ],
)
def test_a_demand_has_to_be_one_sum_of_what_the_replicas_do(rule: str, query: str) -> None:
    assert rules(demand(query)) == ({rule} if rule else set())


def test_an_average_is_right_where_the_hpa_multiplies_by_the_replicas_and_a_latency_never() -> None:
    def by_value(query: str) -> set[str]:
        return rules(changed(demand(query), ("    - type", "    - metricType: Value\n      type")))

    assert by_value(f"avg({RUNNING})") == set()
    assert by_value(f"histogram_quantile(0.9, {BUCKETS})") == {"demand-not-a-sum"}
    assert by_value(f"sum({RUNNING})") == {"sum-with-value"}


def test_a_demand_of_several_elements_cannot_wake_either() -> None:
    assert rules(key(STAYS, f"demandQuery: {RUNNING}")) == {"several-elements"}


def test_a_queue_may_be_a_demand_beside_something_that_keeps_busy_replicas() -> None:
    assert rules(key(STAYS, f"demandQuery: sum({WAITING})", "demandThreshold: '5'")) == set()
    assert rules(beside("sum(x)", demand(f"sum({WAITING})"))) == set()
    assert rules(key(STAYS, f"demandQuery: sum({WAITING})")) == set()


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        ("percent-for-fraction", demand("sum(vllm:kv_cache_usage_perc)", "80")),
        ("percent-for-fraction", demand("sum(trtllm_kv_cache_utilization) or vector(1)", "1.5")),
        ("percent-for-fraction", demand(f"sum({MEMORY})", "40")),
        ("percent-for-fraction", own("max by (namespace, pod) (vllm:kv_cache_usage_perc)", "85")),
        ("percent-for-fraction", own("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "70")),
        ("percent-for-fraction", own("DCGM_FI_DEV_GPU_UTIL / 100", "70")),
        ("percent-for-fraction", kedas("sum(sglang:token_usage)", "80")),
        ("percent-for-fraction", demand("sum(gpu_cache_usage_perc)", "80")),
        ("percent-for-fraction", key(BY_DEMAND, "demandPreset: llm-d-epp-saturation",
                                     "demandRouter: epp", "demandThreshold: '70'")),
        ("demand-not-a-sum", demand(f"sum(sum_over_time({RUNNING}[1m])) / "
                                    f"sum(count_over_time({RUNNING}[1m]))")),
        ("", demand("sum(vllm:kv_cache_usage_perc)", "0.8")),
        ("", demand("100 * sum(vllm:kv_cache_usage_perc)", "80")),
        ("", demand("sum(vllm:kv_cache_usage_perc) * 1", "0.8")),
        ("", demand("50 * sum(vllm:kv_cache_usage_perc)", "40")),
        ("", demand("sum(rate(vllm:kv_cache_usage_perc[5m]))", "40")),
        ("", demand("sum(vllm:kv_cache_usage_perc ^ 2)", "40")),
        ("", demand("sum(vllm:kv_cache_usage_perc > bool 0.9)", "40")),
        ("", own("100 * max by (namespace, pod) (vllm:kv_cache_usage_perc)", "85")),
        ("", key(BY_DEMAND, "demandPreset: vllm-kv-cache")),
        ("", key(BY_DEMAND, "demandPreset: vllm-kv-cache", "demandThresholdFromEnv: T")),
        ("", key(BY_DEMAND, "demandPreset: llm-d-epp-saturation", "demandRouter: epp")
         + "        demandThreshold: '5.6'\n"),
        (
            "",
            key(
                changed(
                    BY_DEMAND,
                    ("workload: bert", "workload: lws/bert"),
                    (
                        "    name: bert\n",
                        f"    name: bert\n    apiVersion: {GROUPS}\n    kind: LeaderWorkerSet\n",
                    ),
                ),
                "demandPreset: vllm-kv-cache",
                "demandThreshold: '1.6'",
            ),
        ),
        ("fraction-for-percent", demand("sum(DCGM_FI_DEV_GPU_UTIL)", "0.7")),
        ("fraction-for-percent", demand("100 * sum(vllm:kv_cache_usage_perc)", "0.8")),
        ("fraction-for-percent", own("gpu_gfx_activity", "0.9")),
        ("fraction-for-percent", kedas("sum(DCGM_FI_DEV_MEM_COPY_UTIL)", "1")),
        ("", demand("sum(DCGM_FI_DEV_GPU_UTIL)", "80")),
        ("", demand("sum(DCGM_FI_DEV_GPU_UTIL) / 100", "0.8")),
        ("", demand(f"sum({RUNNING})", "0.5")),
    ],
)  # fmt: skip
def test_a_threshold_has_the_unit_of_its_number(rule: str, source: str) -> None:
    assert rules(source) == ({rule} if rule else set())


def test_a_share_in_place_of_a_percentage_is_one_that_can_be_meant() -> None:
    (given,) = report(demand("sum(vllm:kv_cache_usage_perc)", "80")).findings
    assert given.fix == "Write 0.8, or 100 * before the demandQuery."
    (given,) = report(demand("sum(vllm:kv_cache_usage_perc)", "1.5")).findings
    assert given.fix == "Write a share, such as 0.8, or 100 * before the demandQuery."


def test_a_threshold_of_one_percent_is_the_cause_of_all_that_does_not_fit_it() -> None:
    (one,) = report(changed(STAYS, ('"70"', '"1"'))).findings
    assert one.rule.name == "fraction-for-percent"
    assert "at 1 a GPU at 100 % needs 100 replicas" in one.why


@pytest.mark.parametrize(
    ("labels", "query"),
    [
        ("pod", "avg(DCGM_FI_DEV_GPU_UTIL)"),
        ("pod", f"sum by (model_name) ({RUNNING})"),
        ("namespace", f"sum by (pod) ({RUNNING})"),
        ("", f"sum by (namespace, exported_pod) ({RUNNING})"),
        ("", f"sum by (namespace, pod) ({RUNNING})"),
        ("", f"sum by (exported_namespace, exported_pod, UUID) ({RUNNING})"),
        ("", f"sum without (engine) ({RUNNING})"),
        ("", f"sum by (pod) ({RUNNING}) * on (pod) group_left (namespace) kube_pod_info"),
        ("pod", f"sum by (job) ({RUNNING}) * on (job) group_left (namespace) kube_pod_info"),
        ("", f"sum without (instance, pod) ({RUNNING})"),
        ("", "gpu_load"),
        ("", "topk(1, DCGM_FI_DEV_GPU_UTIL)"),
    ],
)
def test_an_element_of_a_query_names_its_pod_and_the_namespace(labels: str, query: str) -> None:
    whys = [one.why for one in report(own(query)).findings]
    said = "the elements of this query name no {}: none of them counts for the workload"
    assert whys == ([said.format(labels)] if labels else [])


SLEEPS = changed(STAYS, ("Count: 1", ZERO_COUNT))


@pytest.mark.parametrize(
    ("wakes", "query"),
    [
        (False, f"sum({WAITING})"),
        (False, f"sum({WAITING}) + sum({RUNNING})"),
        (False, f'sum({RUNNING}{{pod=~"{{podPattern}}"}}) or vector(0)'),
        (False, f'sum({RUNNING}{{pod=~"bert-.+",service="llm"}}) or 0 * count(up)'),
        (False, f"sum(queue_length) + sum({RUNNING})"),
        (False, f"sum({RUNNING}) unless on () count(queue_length)"),
        (False, f"sum({RUNNING}) > 0"),
        (False, "sum(dynamo_frontend_inflight_requests)"),
        (False, "sum(num_requests_waiting)"),
        (False, "sum(te_queue_size)"),
        (False, "sum(kthena_router_fairness_queue_size)"),
        (False, "sum(gateway_model_in_flight_requests)"),
        (True, 'sum(rate(kthena_router_requests_total{model="llama"}[1m]))'),
        (False, "sum(vllm_num_requests_waiting)"),
        (True, f"sum({RUNNING}) or sum(queue_length)"),
        (True, f"sum(queue_length) unless on () count({RUNNING})"),
        (True, "sum(rate(vllm:num_incoming_requests_total[1m]))"),
        (True, "sum(llm_d_epp_flow_control_queue_size)"),
        (True, "sum(llm_d_epp_flow_control_queue_size) + sum(llm_d_epp_request_running)"),
        (True, "16 * sum(queue_length) / 2 - 1"),
        (False, "sum(queue_length) * on () sum(llm_d_epp_request_running)"),
        (True, f"absent({RUNNING})"),
        (True, f'sum({RUNNING}{{pod=~"llama-.+"}})'),
        (True, "vector(1)"),
        (True, "hour() > 7"),
        (True, "sum("),
    ],
)
def test_a_metric_wakes_or_does_not_in_whichever_trigger_it_stands(
    wakes: bool,
    query: str,
) -> None:
    in_ours = key(SLEEPS, f"demandQuery: '{query}'")
    for source in (in_ours, in_ours.replace("type: external", "type: external-push")):
        assert ("nothing-wakes" in rules(source)) is not wakes
    assert ("nothing-wakes" in rules(beside(query, SLEEPS))) is not wakes


def test_gpus_wake_where_they_may_be_another_workloads() -> None:
    assert rules(key(SLEEPS, "demandQuery: avg(DCGM_FI_DEV_GPU_UTIL)")) == set()
    assert rules(beside("sum(DCGM_FI_DEV_GPU_UTIL)", SLEEPS)) == {"nothing-wakes"}


@pytest.mark.parametrize(
    ("rule", "source"),
    [
        (
            "gpus-beside-requests",
            key(STAYS, f"demandQuery: sum({RUNNING} + {WAITING})", "demandThreshold: '9'"),
        ),
        ("gpus-beside-requests", beside(f"sum({RUNNING})")),
        ("gpus-beside-requests", beside("sum(dynamo_frontend_inflight_requests)")),
        ("", beside(f"sum({WAITING})")),
        ("gpus-beside-requests", beside("sum(num_requests_running)")),
        ("", beside("sum(kn_serving_queue_depth)")),
        ("", beside("sum(te_queue_size)")),
        ("", beside("sum(llm_d_epp_inflight_tokens)")),
        ("", beside(f"sum({RUNNING}) + sum(x)")),
        ("", key(STAYS, f"demandQuery: sum({RUNNING})")),
    ],
)
def test_requests_set_the_replicas_of_llm_servers_and_gpus_do_not(rule: str, source: str) -> None:
    assert rules(source) == ({rule} if rule else set())


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("avg(DCGM_FI_DEV_GPU_UTIL)", "an average, and the HPA divides it by the replicas again"),
        ("avg by (pod) (DCGM_FI_DEV_GPU_UTIL)", "KEDA fails with several elements"),
        (
            "sum(DCGM_FI_DEV_MEM_COPY_UTIL) / count(DCGM_FI_DEV_MEM_COPY_UTIL)",
            "a ratio, and",
        ),
        (f"max({RUNNING})", "a maximum, and the HPA"),
        ("avg(DCGM_FI_DEV_GPU_UTIL) by pod", "Prometheus refuses it"),
        (f"histogram_quantile(0.9, {BUCKETS})", "nor grows in proportion to the work"),
        ("sum(DCGM_FI_DEV_GPU_UTIL)", ""),
        ("avg(queue_length", ""),
        ("median(DCGM_FI_DEV_GPU_UTIL)", ""),
        (f"avg({' + '.join(['DCGM_FI_DEV_GPU_UTIL'] * 300)})", ""),
        ("histogram_quantile(0.9, rate(http_seconds_bucket[5m]))", ""),
    ],
)
def test_the_recipe_is_told_its_fault(query: str, said: str) -> None:
    findings = report(kedas(query, "20")).findings
    assert [one.rule.name for one in findings] == (["average-recipe"] if said else [])
    assert all(said in one.why for one in findings)


def test_the_recipe_is_told_what_to_write() -> None:
    (gpus,) = report(kedas("avg(DCGM_FI_DEV_GPU_UTIL)")).findings
    assert gpus.fix.startswith("Write sum(...) of what the replicas have to do")
    assert "metricType: Value fits an average too" in gpus.fix
    assert gpus.fix.endswith(", which sums over the workload's pods.")
    (servers,) = report(kedas(f"avg({RUNNING})")).findings
    assert servers.fix.endswith("for this scaler, with a demandPreset, or a demandQuery.")


@pytest.mark.parametrize(
    ("is_other", "matcher"),
    [
        (True, 'namespace="gateway"'),
        (True, 'exported_namespace="gateway"'),
        (True, 'namespace=~"gateway|front"'),
        (False, 'namespace="inference"'),
        (False, 'namespace="{namespace}"'),
        (False, 'namespace=~"inf.+"'),
        (False, 'namespace!=""'),
        (False, 'service="gateway"'),
    ],
)
def test_promql_reads_the_namespace_of_the_scaled_object(
    is_other: bool,
    matcher: str,
) -> None:
    rule = {"other-namespace"} if is_other else set[str]()
    assert rules(key(STAYS, f"demandQuery: 'sum(x{{{matcher}}})'")) == rule
    assert rules(own(f"x{{{matcher}}}")) == rule


def test_a_query_reads_the_namespace_of_the_measured_pods() -> None:
    source = key(own('x{namespace="training"}'), "namespace: training")
    assert rules(source) == set()
