"""TLS between the real KEDA and the scaler: who is accepted, who is refused, and the messages."""

import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from typing import NamedTuple

import pytest
import trustme

from tests.e2e import generation, keda_log, tls
from tests.e2e.lab import Lab
from tests.e2e.manifests import Manifest
from tests.e2e.product import Scaler
from tests.e2e.programs import ROOT
from tests.support import certificates

SOON = {"CONNECTION_MAX_AGE": "2s"}
"""KEDA connects anew this often, so that a scenario sees what rotates."""


class Refusal(NamedTuple):
    """A row of the documentation: what is wrong, and what both sides log."""

    wrong: str
    keda: str
    scaler: str


def documented() -> list[Refusal]:
    """Return the rows of the page on TLS."""
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
    """Return what KEDA's operator said of a workload's scaler, oldest first."""
    return [
        str(each["error"])
        for each in keda_log.errors(lab)
        if each.get("name") == workload and each.get("logger", "").startswith("external_")
    ]


async def keep(lab: Lab, workload: str, parameters: Mapping[str, str]) -> None:
    """Put these parameters into a Secret of the workload's name, for KEDA to read."""
    for manifest in tls.authentication(lab.name, workload, parameters):
        await lab.apply(manifest)


def trusting(lab: Lab, workload: str, **metadata: str) -> Manifest:
    """Return a trigger with the parameters stored for a workload."""
    return lab.gpu(workload, **metadata) | {"authenticationRef": {"name": workload}}


@contextlib.asynccontextmanager
async def beside(lab: Lab, settings: Mapping[str, str]) -> AsyncIterator[Scaler]:
    """Run another scaler than the lab's."""
    scaler = Scaler(lab.directory, lab.scaler.prometheus_url, settings=settings)
    try:
        await scaler.start()
        yield scaler
    finally:
        scaler.stop()


class Attempt(NamedTuple):
    """A trigger that fails: the keys KEDA is given, and the scaler it asks."""

    parameters: Mapping[str, str]
    address: str
    scaler: Scaler


def attempts(
    trust: tls.Authorities, asked: Scaler, expired: Scaler, plain: Scaler
) -> dict[str, Attempt]:
    """Return one of each kind by the name of its workload, in the order of the page."""
    other, expired_client = trustme.CA(), certificates.expired(trust.clients, tls.CLIENT)
    other_ca = {"caCert": other.cert_pem.bytes().decode()}
    to_asked = {
        "ca": trust.keda | other_ca,
        "none": trust.parameters(),
        "expired": trust.parameters(expired_client),
        "stranger": trust.parameters(other.issue_cert(tls.CLIENT)),
        "plain": {},
    }
    made = {name: Attempt(told, asked.address, asked) for name, told in to_asked.items()}
    made["name"] = Attempt(trust.keda, f"localhost:{asked.port}", asked)
    made["late"] = Attempt(trust.keda, expired.address, expired)
    made["server"] = Attempt(trust.keda, plain.address, plain)
    order = ("ca", "name", "late", "none", "expired", "stranger", "plain", "server")
    return {name: made[name] for name in order}


async def run(lab: Lab, workload: str, attempt: Attempt) -> None:
    """Deploy a workload with more load than it has replicas for."""
    await lab.deploy(workload, replicas=2, load=180)
    trigger = lab.gpu(workload, scalerAddress=attempt.address)
    if attempt.parameters:
        await keep(lab, workload, attempt.parameters)
        trigger = trusting(lab, workload, scalerAddress=attempt.address)
    await lab.autoscale(workload, trigger)


@pytest.mark.core
@pytest.mark.generations
async def test_mutual_tls_scales_and_whoever_is_not_trusted_changes_nothing(lab: Lab) -> None:
    trust = tls.Authorities.create()
    await lab.scaler.restart(**trust.settings(lab.directory / "tls"))
    old = certificates.expired(trust.scalers, *tls.NAMES)
    async with (
        beside(lab, trust.settings(lab.directory / "old", old)) as expired,
        beside(lab, {}) as plain,
    ):
        refused = attempts(trust, lab.scaler, expired, plain)
        await run(lab, "bert", Attempt(trust.keda, lab.scaler.address, lab.scaler))
        for workload, attempt in refused.items():
            await run(lab, workload, attempt)
        # 180 % over 70 % per replica: 2.6, so 3.
        await lab.reaches("bert", 3)
        if generation.KEDA_IS_OLDEST:
            # All triggers with an address share the connection that the first one made.
            return

        async def all_is_said() -> bool:
            return all(
                says("\n".join(errors(lab, workload)), row.keda)
                and says(attempt.scaler.output(), row.scaler)
                for (workload, attempt), row in zip(refused.items(), documented(), strict=True)
            )

        await lab.wait(all_is_said, "both sides say what the page on TLS says")
        for workload in refused:
            await lab.shows(workload, "keda Ready", "False ScaledObjectCheckFailed")
            assert lab.path(workload) == [2], lab.story()


async def test_the_scalers_certificate_rotates_under_keda_and_one_that_expired_holds_replicas(
    lab: Lab,
) -> None:
    trust, mounted = tls.Authorities.create(), lab.directory / "tls"
    await lab.scaler.restart(**trust.settings(mounted, mutual=False), **SOON)
    await lab.deploy("bert", replicas=1, load=60)
    await keep(lab, "bert", trust.parameters())
    await lab.autoscale("bert", trusting(lab, "bert", enableTLS="true"))
    await lab.becomes("bert", "measured")

    known = errors(lab, "bert")
    lab.timeline.note("the scaler's certificate rotates")
    trust.settings(mounted)

    async def shown() -> bool:
        return len(lab.scaler.events("certificate.loaded")) == 2

    await lab.wait(shown, "KEDA has connected anew")
    await lab.offer("bert", 120)
    await lab.reaches("bert", 2)
    assert errors(lab, "bert") == known, lab.story()

    lab.timeline.note("the scaler's certificate has expired")
    trust.settings(mounted, certificates.expired(trust.scalers, *tls.NAMES))

    async def refused() -> bool:
        return says("\n".join(errors(lab, "bert")), documented()[2].keda)

    await lab.wait(refused, "KEDA refuses it")
    await lab.offer("bert", 60)
    # Longer than the HPA's stabilization.
    await lab.stays("bert", 2, for_seconds=8)
    trust.settings(mounted)
    await lab.reaches("bert", 1)


async def test_kedas_certificate_rotates_under_polls_and_not_under_streams(lab: Lab) -> None:
    trust, mounted = tls.Authorities.create(), lab.directory / "tls"
    await lab.scaler.restart(**trust.settings(mounted), **SOON)
    for workload, kind in {"bert": "external", "push": "external-push"}.items():
        await lab.deploy(workload, replicas=1, load=60)
        await keep(lab, workload, trust.keda)
        await lab.autoscale(workload, trusting(lab, workload) | {"type": kind})
    for workload in ("bert", "push"):
        await lab.becomes(workload, "measured")
        assert not [each for each in errors(lab, workload) if "connection error" in each], (
            lab.story()
        )

    lab.timeline.note("the CA of clients is another one, and so is KEDA's certificate")
    renewed = trust._replace(clients=trustme.CA())
    for workload in ("bert", "push"):
        await keep(lab, workload, renewed.keda)
    (mounted / "ca.crt").write_bytes(renewed.clients.cert_pem.bytes())

    async def streams_fail() -> bool:
        return len(keda_log.of_streams(lab)) >= 3

    await lab.wait(streams_fail, "streams go on with the certificate they began with")
    for workload in ("bert", "push"):
        await lab.offer(workload, 120)
    for workload in ("bert", "push"):
        await lab.reaches(workload, 2)
    known = keda_log.of_calls(lab)
    await lab.stays("bert", 2, for_seconds=6)
    assert keda_log.of_calls(lab) == known, lab.story()
