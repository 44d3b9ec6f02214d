"""What llm-d's endpoint picker and vLLM show of the requests to a simulated workload.

As many requests are offered as the simulator has load for NAME-requests. The picker holds them
while no pod is Ready, and the Ready ones share them otherwise.
"""

from keda_gpu_scaler.simulator.cluster import Cluster, Key, Pod

REQUESTS = "-requests"


def picker(cluster: Cluster, key: Key, now: float) -> str:
    """Return the page of the endpoint picker in front of a workload, with flow control."""
    requests, ready = _requests(cluster, key), _ready(cluster, key, now)
    held, running = (0.0, requests) if ready else (requests, 0.0)
    labels = f'fairness_id="",priority="0",model_name="{key.name}",target_model_name="{key.name}"'
    pool = f'inference_pool="{key.name}"'
    return (
        f"llm_d_epp_flow_control_queue_size{{{labels},{pool}}} {held:g}\n"
        f"llm_d_epp_request_running{{{labels}}} {running:g}\n"
        # An empty pool reads as full.
        f"llm_d_epp_flow_control_pool_saturation{{{pool}}} 1\n"
    )


def servers(cluster: Cluster, key: Key, now: float) -> str:
    """Return the pages of a workload's vLLM servers in one: the labels name the pods."""
    ready = _ready(cluster, key, now)
    requests = _requests(cluster, key)
    lines = []
    for pod in ready:
        labels = f'namespace="{key.namespace}",pod="{pod.name}",model_name="{key.name}",engine="0"'
        lines += [
            f"vllm:num_requests_running{{{labels}}} {requests / len(ready):g}\n",
            f"vllm:num_requests_waiting{{{labels}}} 0\n",
        ]
    return "".join(lines)


def _requests(cluster: Cluster, key: Key) -> float:
    return cluster.wanted_of(Key(key.namespace, key.name + REQUESTS)).load


def _ready(cluster: Cluster, key: Key, now: float) -> list[Pod]:
    return [pod for pod in cluster.pods.values() if pod.workload == key and pod.is_ready(now)]
