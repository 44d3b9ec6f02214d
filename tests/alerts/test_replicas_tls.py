"""Replicas that exchange alerts over HTTPS: which certificates they trust, and which name."""

from pathlib import Path

import httpx
import trustme

from keda_gpu_scaler.alerts import AlertUpdate
from keda_gpu_scaler.alerts.store import Key
from keda_gpu_scaler.transport.certificates import Certificate
from tests.support import certificates
from tests.support.alert_messages import BERT, alert, group
from tests.support.pki import Pki
from tests.support.replicas import Replica, running

NAME = "keda-gpu-scaler.keda.svc"
FIRES = AlertUpdate(Key(BERT, "a"), "Busy", fires=True)


def firing(leaf: trustme.LeafCert) -> Replica:
    """Return a replica that shows this certificate, and knows of an alert."""
    certificate = Certificate(certificates.chain(leaf), certificates.key_of(leaf), None, {})
    replica = Replica(certificate=lambda: certificate)
    list(replica.alerts.receive([FIRES]))
    return replica


def named(replica: Replica, ca_file: Path) -> Replica:
    """Return a replica without TLS that resolves a name to the address of another one."""

    async def look_up(_url: httpx.URL) -> frozenset[str]:
        return frozenset({replica.url})

    return Replica(
        [f"dns+https://{NAME}:8080"],
        look_up=look_up,
        ca_file=ca_file,
    )


async def test_a_name_counts_although_its_addresses_are_asked(pki: Pki) -> None:
    old = firing(pki.ca.issue_cert(NAME))
    new = named(old, pki.ca_file)
    async with running(old, new):
        assert new.alerts.firing(BERT) == "Busy"
        await new.receive(group(alert(fingerprint="b")))
        assert (new.asked, new.reasons) == ((1, 0), [])
        assert len(old.alerts.records()) == 2


async def test_a_certificate_for_another_name_is_refused(pki: Pki) -> None:
    old = firing(pki.ca.issue_cert("127.0.0.1"))
    new = named(old, pki.ca_file)
    async with running(old, new):
        assert new.asked == (0, 1)
        assert f"Hostname mismatch, certificate is not valid for '{NAME}'" in new.reasons[0]
        assert new.alerts.firing(BERT) is None


async def test_a_ca_that_rotates_is_trusted_from_the_next_request_on(pki: Pki) -> None:
    old = firing(pki.other.issue_cert(NAME))
    new = named(old, pki.ca_file)
    async with running(old, new):
        assert new.asked == (0, 1)
        pki.file("ca.crt", pki.other.cert_pem.bytes())
        await new.peers.meet()
        assert new.alerts.firing(BERT) == "Busy"


async def test_a_half_written_file_changes_nothing(pki: Pki) -> None:
    old = firing(pki.ca.issue_cert(NAME))
    new = named(old, pki.ca_file)
    async with running(old, new):
        pki.ca_file.write_bytes(b"-----BEGIN CERTIFICATE-----\n")
        await new.receive(group(alert(fingerprint="b")))
        assert (new.asked, new.reasons) == ((1, 0), [])
    assert len(old.alerts.records()) == 2
