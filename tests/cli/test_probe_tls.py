"""`keda-gpu-scaler probe` with certificates: which are accepted, and the message when refused."""

import trustme

from tests.support import certificates, scalers
from tests.support.pki import Pki
from tests.support.probing import ANSWERED, failed, probing, run_alone, trusting
from tests.support.scalers import Scaler, credentials

NAME = "keda-gpu-scaler.keda.svc"


def showing(pki: Pki, ca: trustme.CA) -> tuple[str, ...]:
    """Return the flags that show a certificate of a CA."""
    cert, key = pki.pair(ca.issue_cert("keda-operator"))
    return ("--cert-file", str(cert), "--key-file", str(key))


def test_the_certificate_of_a_client_is_shown_and_another_name_can_be_expected(pki: Pki) -> None:
    flags = (*trusting(pki), *showing(pki, pki.other), "--server-name", NAME)
    with scalers.serving(Scaler(), credentials(pki.ca.issue_cert(NAME), pki.other)) as port:
        result = probing(port, *flags)
    assert (result.exit_code, result.output) == (0, ANSWERED)


def test_what_is_wrong_with_a_certificate_is_named(pki: Pki) -> None:
    right, other = pki.ca.issue_cert("127.0.0.1"), pki.ca.issue_cert(NAME)
    plain, tls, ours = (), trusting(pki), (*trusting(pki), *showing(pki, pki.other))
    closed = "the server closed the connection: it may require TLS (--ca-file), or a client cert"
    for shown, flags, words in (
        (
            credentials(other),
            tls,
            "certificate is for another name: give this name with --server-name",
        ),
        (credentials(certificates.expired(pki.ca, "127.0.0.1")), tls, "certificate has expired ("),
        (credentials(right), plain, closed),
        (None, tls, "health: the server does not use TLS: leave out --ca-file ("),
        (credentials(right, pki.ca), tls, closed),
        (credentials(right, pki.ca), ours, closed),
    ):
        with scalers.serving(Scaler(), shown) as port:
            assert words in failed(probing(port, *flags))


def test_another_ca_is_named_in_one_line_and_not_in_what_the_library_writes(pki: Pki) -> None:
    with scalers.serving(Scaler(), credentials(pki.other.issue_cert("127.0.0.1"))) as port:
        done = run_alone(f"127.0.0.1:{port}", *trusting(pki))
    assert (done.returncode, done.stdout) == (1, "")
    (line,) = done.stderr.splitlines()
    assert "health: no CA in --ca-file has issued the server's certificate (UNAVAILABLE: " in line
