"""What llm-d's endpoint picker shows of the requests to a simulated workload.

As many requests are offered as the simulator has load for NAME-requests. The picker holds them
while no pod is Ready, and the Ready ones share them otherwise.
"""

from keda_gpu_scaler.workbench.world.cluster import Cluster, WorkloadKey

REQUESTS = "-requests"


def page(cluster: Cluster, key: WorkloadKey, now: float) -> str:
    """Return the page of the endpoint picker in front of a workload, with flow control."""
    requests = cluster.wanted_of(WorkloadKey(key.namespace, key.name + REQUESTS)).load
    ready = any(pod.workload == key and pod.is_ready(now) for pod in cluster.pods.values())
    held, running = (0.0, requests) if ready else (requests, 0.0)
    labels = f'fairness_id="",priority="0",model_name="{key.name}",target_model_name="{key.name}"'
    pool = f'inference_pool="{key.name}"'
    return (
        f"llm_d_epp_flow_control_queue_size{{{labels},{pool}}} {held:g}\n"
        f"llm_d_epp_request_running{{{labels}}} {running:g}\n"
        # An empty pool reads as full.
        f"llm_d_epp_flow_control_pool_saturation{{{pool}}} 1\n"
    )
