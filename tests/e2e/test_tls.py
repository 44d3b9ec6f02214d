"""TLS between the real KEDA and the scaler: who is accepted, who is refused, and the messages."""

import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from testbed.cluster import generation
from testbed.cluster.manifests import Manifest, secret
from testbed.programs import ROOT
from tests.e2e import keda_log
from tests.e2e.lab import Lab
from tests.e2e.product import Scaler
from tests.support import certificates

NAMES = ("127.0.0.1", "keda-gpu-scaler")
"""What KEDA checks a scaler's certificate against: the host of `scalerAddress`, one of these."""
CLIENT = "keda-operator"


class Authorities(NamedTuple):
    """The authority for scalers, and the one for their clients."""

    scalers: trustme.CA
    clients: trustme.CA

    def settings(self, directory: Path, leaf: trustme.LeafCert | None = None) -> dict[str, str]:
        """Write a scaler's files, as a Secret's volume has them, and return what names them."""
        directory.mkdir(exist_ok=True)
        pair = certificates.write(directory, leaf or self.scalers.issue_cert(*NAMES))
        authority = directory / "ca.crt"
        authority.write_bytes(self.clients.cert_pem.bytes())
        files = {"GRPC_CERT_FILE": str(pair.cert), "GRPC_KEY_FILE": str(pair.key)}
        return {**files, "GRPC_CLIENT_CA_FILE": str(authority)}

    def parameters(self, leaf: trustme.LeafCert | None = None) -> dict[str, str]:
        """Return KEDA's parameters, with this certificate or one that is right."""
        pair = leaf or self.clients.issue_cert(CLIENT)
        return self.authority() | {
            "tlsClientCert": certificates.chain(pair).decode(),
            "tlsClientKey": certificates.key_of(pair).decode(),
        }

    def authority(self) -> dict[str, str]:
        """Return KEDA's parameters without a certificate of its own."""
        return {"caCert": self.scalers.cert_pem.bytes().decode()}


class Refusal(NamedTuple):
    """A row of the documentation: what is wrong, and what both sides log."""

    wrong: str
    keda: str
    scaler: str


def documented() -> list[Refusal]:
    page = (ROOT / "docs" / "tls.md").read_text()
    found = re.search(r"<!-- refusals -->\n(.*?)<!-- /refusals -->", page, re.DOTALL)
    assert found is not None
    return [Refusal(*line[2:-2].split(" | ")) for line in found[1].splitlines()[2:]]


def says(output: str, cell: str) -> bool:
    """Tell whether one of the phrases of a cell is in an output; … stands for anything."""
    phrases = re.findall("`([^`]+)`", cell)
    patterns = (re.escape(phrase).replace("…", ".*") for phrase in phrases)
    return not phrases or any(re.search(pattern, output) for pattern in patterns)


def errors(lab: Lab, workload: str) -> list[str]:
    return [
        str(each["error"])
        for each in keda_log.errors(lab)
        if each.get("name") == workload and each.get("logger", "").startswith("external_")
    ]


async def keep(lab: Lab, workload: str, parameters: Mapping[str, str]) -> None:
    """Put these parameters where a TriggerAuthentication of the workload's name reads them."""
    await lab.apply(secret(lab.name, workload, parameters))
    references = [{"parameter": each, "name": workload, "key": each} for each in parameters]
    await lab.apply(
        {
            "apiVersion": "keda.sh/v1alpha1",
            "kind": "TriggerAuthentication",
            "metadata": {"namespace": lab.name, "name": workload},
            "spec": {"secretTargetRef": references},
        }
    )


def trusting(lab: Lab, workload: str, **metadata: str) -> Manifest:
    return lab.gpu(workload, **metadata) | {"authenticationRef": {"name": workload}}


@contextlib.asynccontextmanager
async def beside(lab: Lab, settings: Mapping[str, str]) -> AsyncIterator[Scaler]:
    scaler = Scaler(lab.directory, lab.scaler.prometheus_url, settings=settings)
    try:
        await scaler.start()
        yield scaler
    finally:
        scaler.stop()


class Attempt(NamedTuple):
    """A trigger that fails: the keys KEDA is given, and the scaler it asks."""

    parameters: Mapping[str, str]
    scaler: Scaler
    host: str = "127.0.0.1"


def attempts(
    trust: Authorities, asked: Scaler, expired: Scaler, plain: Scaler
) -> dict[str, Attempt]:
    """Return one of each kind by the name of its workload, in the order of the page."""
    other, late = trustme.CA(), certificates.expired(trust.clients, CLIENT)
    right = trust.parameters()
    return {
        "ca": Attempt(right | {"caCert": other.cert_pem.bytes().decode()}, asked),
        "name": Attempt(right, asked, host="localhost"),
        "late": Attempt(right, expired),
        "none": Attempt(trust.authority(), asked),
        "expired": Attempt(trust.parameters(late), asked),
        "stranger": Attempt(trust.parameters(other.issue_cert(CLIENT)), asked),
        "plain": Attempt({}, asked),
        "server": Attempt(right, plain),
    }


async def run(lab: Lab, workload: str, attempt: Attempt) -> None:
    """Deploy a workload with more load than it has replicas for."""
    await lab.deploy(workload, replicas=2, load=180)
    address = f"{attempt.host}:{attempt.scaler.port}"
    trigger = lab.gpu(workload, scalerAddress=address)
    if attempt.parameters:
        await keep(lab, workload, attempt.parameters)
        trigger = trusting(lab, workload, scalerAddress=address)
    await lab.autoscale(workload, trigger)


@pytest.mark.core
@pytest.mark.generations
async def test_mutual_tls_scales_and_whoever_is_not_trusted_changes_nothing(lab: Lab) -> None:
    trust = Authorities(trustme.CA(), trustme.CA())
    await lab.scaler.restart(**trust.settings(lab.directory / "tls"))
    old = certificates.expired(trust.scalers, *NAMES)
    async with (
        beside(lab, trust.settings(lab.directory / "old", old)) as expired,
        beside(lab, {}) as plain,
    ):
        refused = attempts(trust, lab.scaler, expired, plain)
        await run(lab, "bert", Attempt(trust.parameters(), lab.scaler))
        for workload, attempt in refused.items():
            await run(lab, workload, attempt)
        # 180 % over 70 % per replica: 2.6, so 3.
        await lab.reaches("bert", 3)
        if generation.KEDA_IS_OLDEST:
            # All triggers with an address share the connection that the first one made.
            return
        await lab.wait(
            lambda: all(
                says("\n".join(errors(lab, workload)), row.keda)
                and says(attempt.scaler.output(), row.scaler)
                for (workload, attempt), row in zip(refused.items(), documented(), strict=True)
            ),
            "both sides say what the page on TLS says",
        )
        for workload in refused:
            await lab.shows(workload, "keda Ready", "False ScaledObjectCheckFailed")
            assert lab.path(workload) == [2], lab.story()


async def test_kedas_certificate_rotates_under_polls_and_not_under_streams(lab: Lab) -> None:
    trust, mounted = Authorities(trustme.CA(), trustme.CA()), lab.directory / "tls"
    # KEDA connects anew this often, so that the scenario sees what rotates.
    await lab.scaler.restart(**trust.settings(mounted), CONNECTION_MAX_AGE="2s")
    for workload, kind in {"bert": "external", "push": "external-push"}.items():
        await lab.deploy(workload, replicas=1, load=60)
        await keep(lab, workload, trust.parameters())
        await lab.autoscale(workload, trusting(lab, workload) | {"type": kind})
    for workload in ("bert", "push"):
        await lab.becomes(workload, "measured")
        assert not any("connection error" in each for each in errors(lab, workload)), lab.story()

    lab.timeline.note("the CA of clients is another one, and so is KEDA's certificate")
    renewed = trust._replace(clients=trustme.CA())
    for workload in ("bert", "push"):
        await keep(lab, workload, renewed.parameters())
    (mounted / "ca.crt").write_bytes(renewed.clients.cert_pem.bytes())
    await lab.wait(
        lambda: len(keda_log.of_streams(lab)) >= 3,
        "streams go on with the certificate they began with",
    )
    for workload in ("bert", "push"):
        await lab.offer(workload, 120)
    for workload in ("bert", "push"):
        await lab.reaches(workload, 2)
    known = keda_log.of_calls(lab)
    await lab.stays("bert", 2, for_seconds=6)
    assert keda_log.of_calls(lab) == known, lab.story()
