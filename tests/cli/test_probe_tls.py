"""`keda-gpu-scaler probe` with certificates: which are accepted, and the message when refused."""

from pathlib import Path

import pytest
import trustme

from tests.support import certificates, scalers
from tests.support.pki import Pki
from tests.support.probing import ANSWERED, failed, probing, run_alone, trusting
from tests.support.scalers import Scaler, credentials


def showing(pki: Pki, ca: trustme.CA) -> tuple[str, ...]:
    """Return the flags that show a certificate of a CA."""
    cert, key = pki.pair(ca.issue_cert("keda-operator"))
    return ("--cert-file", str(cert), "--key-file", str(key))


@pytest.fixture
def pki(tmp_path: Path) -> Pki:
    return Pki(tmp_path)


def test_tls_and_the_certificate_of_a_client(pki: Pki) -> None:
    with scalers.serving(Scaler(), credentials(pki.ca.issue_cert("127.0.0.1"), pki.other)) as port:
        result = probing(f"https://127.0.0.1:{port}", *trusting(pki), *showing(pki, pki.other))
    assert (result.exit_code, result.output) == (0, ANSWERED)


def test_a_name_other_than_the_targets_can_be_expected(pki: Pki) -> None:
    leaf = pki.ca.issue_cert("keda-gpu-scaler.keda.svc")
    with scalers.serving(Scaler(), credentials(leaf)) as port:
        result = probing(port, *trusting(pki), "--server-name", "keda-gpu-scaler.keda.svc")
        said = failed(probing(port, *trusting(pki)))
    assert (result.exit_code, result.output) == (0, ANSWERED)
    assert "health: the server's certificate is for another name: --server-name says" in said


def test_an_expired_certificate_is_named(pki: Pki) -> None:
    leaf = certificates.expired(pki.ca, "127.0.0.1")
    with scalers.serving(Scaler(), credentials(leaf)) as port:
        assert "health: the server's certificate has expired (" in failed(
            probing(port, *trusting(pki))
        )


def test_plaintext_against_tls_is_named_and_the_other_way_round(pki: Pki) -> None:
    with scalers.serving(Scaler(), credentials(pki.ca.issue_cert("127.0.0.1"))) as port:
        assert "where it speaks TLS, give --ca-file (" in failed(probing(port))
    with scalers.serving(Scaler()) as port:
        said = failed(probing(port, *trusting(pki)))
    assert "health: the server speaks no TLS: leave --ca-file out (" in said


@pytest.mark.parametrize("shows", [False, True])
def test_a_client_certificate_that_is_missing_or_unknown_is_named(pki: Pki, *, shows: bool) -> None:
    flags = showing(pki, pki.other) if shows else ()
    with scalers.serving(Scaler(), credentials(pki.ca.issue_cert("127.0.0.1"), pki.ca)) as port:
        said = failed(probing(port, *trusting(pki), *flags))
    assert "where it asks for client certificates, --cert-file and --key-file have to be" in said


def test_a_certificate_of_another_ca_is_named_in_one_line_and_not_in_what_the_library_writes(
    pki: Pki,
) -> None:
    with scalers.serving(Scaler(), credentials(pki.other.issue_cert("127.0.0.1"))) as port:
        done = run_alone(f"127.0.0.1:{port}", *trusting(pki))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "health: the server's certificate is of no CA in --ca-file (UNAVAILABLE: " in line
