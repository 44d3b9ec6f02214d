"""The settings of the two ports, above all the files of their certificates."""

import re
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import ed25519

from keda_gpu_scaler.settings import TlsFiles
from tests.settings.test_loading import load, refusal
from tests.support.certificates import HOST, for_agreement_only, pem, under_a_weak_ca, write

SOURCE = {"PROMETHEUS_URL": "http://prometheus:9090"}
AUTHORITY = trustme.CA()


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A pair, a CA, the key of another pair, one that is encrypted, and both in one file."""
    issued = AUTHORITY.issue_cert(HOST)
    pair, other = write(tmp_path, issued), write(tmp_path, AUTHORITY.issue_cert(HOST), "other")
    names = {name: tmp_path / name for name in ("ca.crt", "encrypted.key", "both.pem", "text")}
    names["ca.crt"].write_bytes(AUTHORITY.cert_pem.bytes())
    names["encrypted.key"].write_bytes(pem(ed25519.Ed25519PrivateKey.generate(), b"secret"))
    names["both.pem"].write_bytes(issued.private_key_and_cert_chain_pem.bytes())
    names["text"].write_text("hunter2")
    return names | {"tls.crt": pair.cert, "tls.key": pair.key, "other.key": other.key}


def test_by_default_neither_port_speaks_tls() -> None:
    loaded = load(**SOURCE)
    assert loaded.grpc_tls is None
    assert loaded.http_tls is None


def test_every_file_can_come_from_the_environment(files: dict[str, Path]) -> None:
    cert, key, authority = (str(files[name]) for name in ("tls.crt", "tls.key", "ca.crt"))
    loaded = load(
        **SOURCE,
        GRPC_CERT_FILE=cert,
        GRPC_KEY_FILE=key,
        GRPC_CLIENT_CA_FILE=authority,
        HTTP_CERT_FILE=cert,
        HTTP_KEY_FILE=key,
    )
    assert loaded.grpc_tls == TlsFiles(Path(cert), Path(key), Path(authority))
    assert loaded.http_tls == TlsFiles(Path(cert), Path(key), None)


def test_every_file_can_come_from_the_file(tmp_path: Path, files: dict[str, Path]) -> None:
    yaml = tmp_path / "settings.yaml"
    lines = [
        "prometheus_url: http://prometheus:9090",
        f"grpc_cert_file: {files['both.pem']}",
        f"grpc_client_ca_file: {files['ca.crt']}",
        f"http_cert_file: {files['tls.crt']}",
        f"http_key_file: {files['tls.key']}",
    ]
    yaml.write_text("\n".join(lines))
    loaded = load(str(yaml))
    assert loaded.grpc_tls == TlsFiles(files["both.pem"], None, files["ca.crt"])
    assert loaded.http_tls == TlsFiles(files["tls.crt"], files["tls.key"])


CA_FILE = "GRPC_CLIENT_CA_FILE"
PAIR = {"GRPC_CERT_FILE": "tls.crt", "GRPC_KEY_FILE": "tls.key"}


NO_PEM = "expected a PEM file with certificates"
NO_KEY = "expected a PEM file with an unencrypted private key"
NOT_ITS_KEY = "expected the key of the first certificate in the certificate's file"
NOT_READ = "expected a file this process can read (No such file or directory)"


@pytest.mark.parametrize(
    ("given", "wrong", "said"),
    [
        ({"GRPC_CERT_FILE": "tls.crt"}, "GRPC_KEY_FILE", f"; {NO_KEY}"),
        ({"HTTP_CERT_FILE": "tls.crt"}, "HTTP_KEY_FILE", f"; {NO_KEY}"),
        ({"GRPC_KEY_FILE": "tls.key"}, "GRPC_KEY_FILE", ": …; expected grpc_cert_file with it"),
        ({"HTTP_KEY_FILE": "tls.key"}, "HTTP_KEY_FILE", ": …; expected http_cert_file with it"),
        ({CA_FILE: "ca.crt"}, CA_FILE, ": …; expected grpc_cert_file with it"),
        (PAIR | {CA_FILE: "tls.key"}, CA_FILE, f": …; {NO_PEM}"),
        (PAIR | {"GRPC_KEY_FILE": "other.key"}, "GRPC_KEY_FILE", f": …; {NOT_ITS_KEY}"),
        (PAIR | {"GRPC_KEY_FILE": "encrypted.key"}, "GRPC_KEY_FILE", f": …; {NO_KEY}"),
        (PAIR | {"GRPC_KEY_FILE": "text"}, "GRPC_KEY_FILE", f": …; {NO_KEY}"),
        (PAIR | {"GRPC_CERT_FILE": "text"}, "GRPC_CERT_FILE", f": …; {NO_PEM}"),
        (PAIR | {"GRPC_CERT_FILE": "nowhere"}, "GRPC_CERT_FILE", f": …; {NOT_READ}"),
    ],
)
def test_a_wrong_file_is_one_mistake_that_names_its_setting(
    files: dict[str, Path], tmp_path: Path, given: dict[str, str], wrong: str, said: str
) -> None:
    paths = {name: str(files.get(file, tmp_path / file)) for name, file in given.items()}
    (found,) = refusal(**SOURCE, **paths)
    assert re.sub(r'"/[^"]*"', "…", found) == f"- KEDA_GPU_SCALER_{wrong}{said}"


def test_all_mistakes_are_said_at_once_and_no_content_of_a_file(files: dict[str, Path]) -> None:
    found = refusal(
        GRPC_CERT_FILE=str(files["text"]),
        GRPC_KEY_FILE=str(files["tls.key"]),
        GRPC_CLIENT_CA_FILE=str(files["text"]),
        HTTP_KEY_FILE=str(files["tls.key"]),
        LOG_LEVEL="loud",
    )
    assert len(found) == 5
    assert "hunter2" not in "".join(found)


@pytest.mark.parametrize(
    ("port", "made", "library"),
    [("HTTP", under_a_weak_ca(), "OpenSSL"), ("GRPC", for_agreement_only(), "gRPC's library")],
)
@pytest.mark.parametrize("is_one_file", [True, False])
def test_a_certificate_that_the_port_could_not_show_is_a_wrong_setting(
    tmp_path: Path,
    port: str,
    made: tuple[bytes, bytes],
    library: str,
    is_one_file: bool,  # noqa: FBT001 - a table
) -> None:
    cert, key = tmp_path / "odd.crt", tmp_path / "odd.key"
    cert.write_bytes(b"".join(made) if is_one_file else made[0])
    key.write_bytes(made[1])
    keys = {} if is_one_file else {f"{port}_KEY_FILE": str(key)}
    (mistake,) = refusal(**SOURCE, **{f"{port}_CERT_FILE": str(cert)}, **keys)
    assert mistake.startswith(f"- KEDA_GPU_SCALER_{port}_KEY_FILE")
    expected = f"expected {port.lower()}_cert_file to hold a certificate that {library} takes"
    assert expected in mistake
