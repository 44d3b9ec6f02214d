"""What KEDA's operator says about one scenario, from its log of JSON lines."""

import json
from typing import Any

from testbed.cluster import generation
from tests.e2e.lab import Lab

STREAM_FAILED = f"error running {'internalRun' if generation.KEDA_IS_OLD else 'StreamIsActive'}"
"""The message about a stream of a push trigger that was open, or could not be opened."""
_CLOSED = "unable to get connection from the pool"
"""What KEDA 2.21 says of a stream with a certificate that polls have replaced."""
_METRIC_SPECS = "StreamMetricSpec: "
_CUT = "code = Canceled desc = CANCELLED"
_SLOW = "error when reading response body"


def errors(lab: Lab) -> list[dict[str, Any]]:
    return [found for found in _lines(lab) if found["level"] == "error"]


def of_streams(lab: Lab) -> list[str]:
    return [each["msg"] for each in errors(lab) if each["msg"] in {STREAM_FAILED, _CLOSED}]


def of_calls(lab: Lab) -> list[str]:
    streams = STREAM_FAILED, _CLOSED, _METRIC_SPECS
    return [str(each) for each in errors(lab) if not each["msg"].startswith(streams)]


def reconciles(lab: Lab, workload: str) -> int:
    begun = [found for found in _lines(lab) if found["msg"] == "Reconciling ScaledObject"]
    return sum(found["name"] == workload for found in begun)


def failures(lab: Lab) -> list[dict[str, Any]]:
    """Return every error except calls that were cut when a scaler's server stopped.

    A stopping gRPC server cuts calls that it has accepted and not dispatched yet. KEDA repeats
    it at once, counts no error, and logs the first one all the same. On a busy machine the API
    server can also be slower than KEDA waits for it, which says nothing of a scaler.
    """
    expected = _CUT, _SLOW
    return [
        each
        for each in errors(lab)
        if not any(text in f"{each['msg']} {each.get('error')}" for text in expected)
    ]


def _lines(lab: Lab) -> list[dict[str, Any]]:
    log = lab.kubeconfig.with_name("keda-operator.log").read_text(errors="replace")
    complete, _, _ = log.rpartition("\n")  # the last line may be half written
    ours = (line for line in complete.splitlines() if f'"{lab.name}"' in line)
    return [json.loads(line) for line in ours if line.startswith("{")]
