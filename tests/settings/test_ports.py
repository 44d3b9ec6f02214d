"""The settings of the two ports, above all the files of their certificates."""

import re
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.asymmetric import ed25519

from tests.settings.test_loading import load, refusal
from tests.support.certificates import HOST, pem, write

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


def test_every_file_can_come_from_the_environment(files: dict[str, Path]) -> None:
    names = {
        "grpc_cert_file": "tls.crt",
        "grpc_key_file": "tls.key",
        "grpc_client_ca_file": "ca.crt",
        "http_cert_file": "both.pem",
        "webhook_ca_file": "ca.crt",
    }
    loaded = load(**SOURCE, **{name.upper(): str(files[file]) for name, file in names.items()})
    assert {name: getattr(loaded, name) for name in names} == {
        name: files[file] for name, file in names.items()
    }


CA_FILE = "GRPC_CLIENT_CA_FILE"
PAIR = {"GRPC_CERT_FILE": "tls.crt", "GRPC_KEY_FILE": "tls.key"}


NO_PEM = "expected a PEM file with certificates (NO_CERTIFICATE_OR_CRL_FOUND)"
NO_KEY = "expected the unencrypted key of the PEM certificate in … (no key in PEM)"
NOT_ITS_KEY = "expected the unencrypted key of the PEM certificate in … (KEY_VALUES_MISMATCH)"
NOT_READ = "expected a PEM file with certificates (No such file or directory)"
NO_KEY_FILE = "expected the unencrypted key of the PEM certificate in … (No such file or directory)"


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
        (PAIR | {"GRPC_KEY_FILE": "nowhere"}, "GRPC_KEY_FILE", f": …; {NO_KEY_FILE}"),
    ],
)
def test_a_wrong_file_is_one_mistake_that_names_its_setting(
    files: dict[str, Path], tmp_path: Path, given: dict[str, str], wrong: str, said: str
) -> None:
    paths = {name: str(files.get(file, tmp_path / file)) for name, file in given.items()}
    (found,) = refusal(**SOURCE, **paths)
    assert re.sub(r'"/[^"]*"|/\S+', "…", found) == f"- KEDA_GPU_SCALER_{wrong}{said}"
