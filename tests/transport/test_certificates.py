"""The certificate that this process shows: files that rotate, are half written, or expire."""

import ssl
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trustme
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from hypothesis import given
from hypothesis import strategies as st

from keda_gpu_scaler import errors
from keda_gpu_scaler.transport.certificates import CertificateFiles
from tests.support.certificates import (
    DAY,
    HOST,
    Key,
    chain,
    key_of,
    pem,
    self_signed,
    write,
)
from tests.support.pipes import pipe

AUTHORITY = trustme.CA()
FIRST, SECOND = AUTHORITY.issue_cert(HOST), AUTHORITY.issue_cert(HOST)


OPENSSL = "a certificate that OpenSSL takes with the key in {} ({})"


def following(
    cert: Path,
    key: Path | None,
    client_ca: Path | None,
    stated: list[float | str] | None = None,
) -> CertificateFiles:
    """Follow some files, and write down what is loaded (its end) and refused (why)."""
    tell = [] if stated is None else stated
    return CertificateFiles(cert, key, client_ca, loaded=tell.append, refused=tell.append)


class Followed:
    """The files of a certificate, and what is told of them."""

    def __init__(self, directory: Path, issued: trustme.LeafCert = FIRST) -> None:
        self.stated: list[float | str] = []
        self.pair = write(directory, issued)
        self.ca = directory / "ca.crt"
        AUTHORITY.cert_pem.write_to_path(str(self.ca))
        self.files = following(*self.pair, self.ca, self.stated)

    def shown(self) -> bytes:
        """Return the chain that is shown now."""
        return self.files.current().chain


@pytest.fixture
def followed(tmp_path: Path) -> Followed:
    return Followed(tmp_path)


def test_the_certificate_of_the_files_is_loaded_at_once_and_reported(followed: Followed) -> None:
    current = followed.files.current()
    assert current.chain == chain(FIRST)
    assert current.client_ca == AUTHORITY.cert_pem.bytes()
    assert followed.stated == [current.expiries["server"]]
    ends = x509.load_pem_x509_certificate(AUTHORITY.cert_pem.bytes()).not_valid_after_utc
    assert followed.files.current().expiries == {
        "server": current.expiries["server"],
        "client_ca": ends.timestamp(),
    }


def test_a_file_is_regular_and_small_and_nothing_else_is_waited_for(followed: Followed) -> None:
    before, key = followed.files.current(), followed.pair.key
    key.write_bytes(key_of(FIRST) + b"\n" * 2**20)
    assert followed.files.current() is before
    key.unlink()
    with pipe(key, key_of(FIRST)):
        assert followed.files.current() is before
    why = [told for told in followed.stated if isinstance(told, str)]
    assert why == [
        f"{key} is not a file this process can read (it has more than {2**20} bytes)",
        f"{key} is not a file this process can read (it is not a regular file)",
    ]


def test_nothing_shows_the_key(followed: Followed) -> None:
    current = followed.files.current()
    assert current.key.decode() not in repr(current)
    assert "key=" not in repr(current)


def test_a_half_written_pair_changes_nothing_and_is_reported_once(followed: Followed) -> None:
    before = followed.files.current()
    followed.pair.cert.write_bytes(chain(SECOND))
    assert followed.files.current() is before
    assert followed.files.current() is before
    (refused,) = followed.stated[1:]
    assert (
        refused
        == f"{followed.pair.cert} is not {OPENSSL.format(followed.pair.key, 'KEY_VALUES_MISMATCH')}"
    )
    followed.pair.key.write_bytes(key_of(SECOND))
    assert followed.shown() == chain(SECOND)
    assert followed.shown() == chain(SECOND)
    assert [type(told) for told in followed.stated[2:]] == [float]


WEAK = rsa.generate_private_key(65537, 1024)  # noqa: S505 - refused


def test_a_certificate_that_openssl_refuses_is_not_shown(tmp_path: Path) -> None:
    stated: list[float | str] = []
    pair = write(tmp_path, FIRST)
    files = following(*pair, None, stated)
    before, reason = files.current(), OPENSSL.format(pair.key, "EE_KEY_TOO_SMALL")
    for path, content in zip(pair, (self_signed(WEAK), pem(WEAK)), strict=True):
        path.write_bytes(content)
    assert files.current() is before
    assert stated[1:] == [f"{pair.cert} is not {reason}"]
    with pytest.raises(errors.SettingsError) as caught:
        following(*pair, None, stated)
    assert str(caught.value).endswith(reason)


BUNDLE = AUTHORITY.cert_pem.bytes() + trustme.CA().cert_pem.bytes()


def test_a_bundle_may_hold_other_things_and_no_certificate_that_would_be_left_out(
    followed: Followed,
) -> None:
    for content in (
        b"# Issuer: CN=A-1 ----\n----\n" + BUNDLE.replace(b"\n", b"\r\n") + b"\n-- end\n",
        key_of(FIRST) + BUNDLE,
        BUNDLE.replace(b" CERTIFICATE", b" X509 CERTIFICATE"),
    ):
        followed.ca.write_bytes(content)
        assert followed.files.current().client_ca == BUNDLE
    known = len(followed.stated)
    for content in (
        BUNDLE.replace(b" CERTIFICATE", b" TRUSTED CERTIFICATE", 2),
        BUNDLE.replace(b"-----END CERTIFICATE-----", b"", 1),
    ):
        followed.ca.write_bytes(content)
        assert followed.files.current().client_ca == BUNDLE
    for refused in followed.stated[known:]:
        assert isinstance(refused, str)
        assert f"{followed.ca} is not a PEM file with certificates" in refused
    assert len(followed.stated) > known


@given(cut=st.data())
def test_no_part_of_new_files_is_ever_shown(
    tmp_path_factory: pytest.TempPathFactory, cut: st.DataObject
) -> None:
    followed = Followed(tmp_path_factory.mktemp("cut"))
    names = st.sampled_from([followed.pair.cert, followed.pair.key])
    for path, content in zip(followed.pair, (chain(SECOND), key_of(SECOND)), strict=True):
        written = cut.draw(st.integers(0, len(content)))
        path.write_bytes(content[:written])
        if cut.draw(st.booleans()):
            cut.draw(names).write_bytes(b"")
        shown = followed.files.current()
        assert shown.chain in (chain(FIRST), chain(SECOND))
        _ = shown.context  # OpenSSL refuses a key that is not the certificate's


def test_of_several_certificates_the_first_to_expire_counts(tmp_path: Path) -> None:
    soon = datetime.now(UTC).replace(microsecond=0) + DAY
    own, between = AUTHORITY.issue_cert(HOST), AUTHORITY.issue_cert("between", not_after=soon)
    cert, ca = tmp_path / "tls.crt", tmp_path / "ca.crt"
    cert.write_bytes(chain(own) + chain(between))
    ca.write_bytes(AUTHORITY.cert_pem.bytes() + chain(between))
    pair = write(tmp_path, own, "own")
    files = following(cert, pair.key, ca)
    assert files.current().expiries == dict.fromkeys(("server", "client_ca"), soon.timestamp())


@pytest.mark.parametrize(
    "key",
    [
        rsa.generate_private_key(65537, 2048),
        ec.generate_private_key(ec.SECP521R1()),
        ed25519.Ed25519PrivateKey.generate(),
    ],
    ids=["RSA", "ECDSA", "Ed25519"],
)
def test_one_file_can_hold_the_certificate_and_its_key_of_any_usual_kind(
    tmp_path: Path, key: Key
) -> None:
    both, certificate = tmp_path / "both.pem", self_signed(key)
    both.write_bytes(certificate + pem(key))
    current = following(both, None, None).current()
    assert (current.chain, current.client_ca) == (certificate, None)


DER = ssl.PEM_cert_to_DER_cert(chain(FIRST).decode())


@pytest.mark.filterwarnings("ignore:Parsed a serial number")  # taken for now, and to be refused
@given(place=st.integers(0, len(DER) - 1), byte=st.integers(0, 255))
def test_no_damage_in_a_file_keeps_a_certificate_from_its_server(
    tmp_path_factory: pytest.TempPathFactory, place: int, byte: int
) -> None:
    followed = Followed(tmp_path_factory.mktemp("damage"))
    damaged = DER[:place] + bytes([byte]) + DER[place + 1 :]
    followed.pair.cert.write_text(ssl.DER_cert_to_PEM_cert(damaged))
    assert followed.files.current().key == followed.files.current().key
