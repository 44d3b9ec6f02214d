"""Bodies and answers that expand in memory: a process with the chart's limit of memory survives."""

import concurrent.futures
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from testbed.triggers import reference
from tests.support.answers import answering
from tests.support.serving import COMMAND, Scaler, serving

pytestmark = pytest.mark.slow

LIMIT_BYTES = 512 * 2**20
"""The chart's limit of memory, here of all that the process writes to."""
DEADLINE_SECONDS = 10.0
"""Of each of KEDA's calls; a process that is kept busy answers none of them in time."""
PATIENCE_SECONDS = 60.0
MIB = 2**20
TOKEN = "s3cr3t-t0ken"


def objects(size: int) -> bytes:
    """Return JSON of that size: a list of alerts in which each three bytes are an object."""
    begin, end = b'{"alerts":[', b"{}]}"
    return begin + b"{}," * ((size - len(begin) - len(end)) // 3) + end


@contextmanager
def limited(**settings: str) -> Iterator[Scaler]:
    """Run a scaler with a webhook and little memory."""
    command = ["prlimit", f"--data={LIMIT_BYTES}", "--", *COMMAND]
    source = {"SCRAPE_TARGETS": "", "PROMETHEUS_URL": "http://127.0.0.1:1"}
    with serving(command, WEBHOOK_TOKEN=TOKEN, **source, **settings) as scaler:
        yield scaler


@pytest.mark.parametrize(
    ("path", "size", "number"),
    [("/alerts", 16 * MIB, 1), ("/alerts", 15 * MIB, 40), ("/webhook", MIB, 40)],
    ids=["one large body", "many large bodies", "many bodies"],
)
def test_no_bodies_take_the_memory_of_the_process(path: str, size: int, number: int) -> None:
    body = objects(size)
    with (
        limited() as scaler,
        httpx.Client(
            base_url=scaler.pages.base_url,
            headers={"authorization": f"Bearer {TOKEN}"},
            limits=httpx.Limits(max_connections=number),
            timeout=PATIENCE_SECONDS,
            trust_env=False,
        ) as client,
        concurrent.futures.ThreadPoolExecutor(number) as senders,
    ):

        def send() -> int:
            try:
                return client.post(path, content=body).status_code
            except httpx.TransportError:  # refused before all of it was read
                return 413

        sent = [senders.submit(send) for _ in range(number)]
        calls = 0
        while calls < 3 or not all(one.done() for one in sent):
            scaler.stub.GetMetricSpec(reference(), timeout=DEADLINE_SECONDS)
            calls += 1
        assert {one.result() for one in sent} <= {400, 413, 503}
        assert scaler.get("/healthz", PATIENCE_SECONDS) == "ok\n"
        assert scaler.process.poll() is None


def test_no_answer_of_a_replica_takes_the_memory_of_the_process() -> None:
    was_asked = threading.Event()

    def lies(_path: str, _token: str | None) -> tuple[int, bytes]:
        was_asked.set()
        return 200, objects(16 * MIB)

    with answering(lies) as port, limited(WEBHOOK_PEERS=f"http://127.0.0.1:{port}") as scaler:
        assert was_asked.wait(PATIENCE_SECONDS)
        assert scaler.get("/healthz") == "ok\n"
        assert scaler.process.poll() is None
