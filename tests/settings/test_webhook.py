"""The settings of the webhook, and its token while the process runs."""

from pathlib import Path

import pytest
import trustme

from keda_gpu_scaler import errors
from keda_gpu_scaler.settings import WebhookSettings
from tests.settings.test_loading import WORD, load, refusal

SOURCE = {"PROMETHEUS_URL": "http://prometheus:9090"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "token"
    written.write_text(f"{WORD}\n")
    return written


def test_by_default_there_is_no_webhook_and_an_alert_outlives_the_usual_repeat_interval() -> None:
    webhook = load(**SOURCE).webhook
    assert webhook == WebhookSettings()
    assert not webhook.is_on
    assert webhook.lifetime_seconds == 5 * 3600
    assert webhook.peers == ()
    with pytest.raises(errors.SettingsError, match="the webhook has no token"):
        webhook.secret()


def test_every_setting_can_come_from_the_environment() -> None:
    variables = {
        "WEBHOOK_TOKEN": WORD,
        "WEBHOOK_LIFETIME": "10m",
        "WEBHOOK_PEERS": "dns+http://keda-gpu-scaler:8080",
    }
    webhook = load(**SOURCE, **variables).webhook
    assert webhook.is_on
    assert webhook.secret() == WORD
    assert webhook.lifetime_seconds == 600
    assert webhook.peers == ("dns+http://keda-gpu-scaler:8080",)


def test_every_setting_can_come_from_the_file(tmp_path: Path, file: Path) -> None:
    yaml = tmp_path / "settings.yaml"
    lines = [
        "prometheus_url: http://prometheus:9090",
        f"webhook_token_file: {file}",
        "webhook_lifetime: 1h",
        "webhook_peers: [http://a:8080, http://b:8080]",
    ]
    yaml.write_text("\n".join(lines))
    webhook = load(str(yaml)).webhook
    assert (webhook.secret(), webhook.lifetime_seconds) == (WORD, 3600)
    assert webhook.peers == ("http://a:8080", "http://b:8080")


def test_replicas_can_be_asked_over_tls(tmp_path: Path) -> None:
    peers = "https://10.0.0.1:8080,dns+https://keda-gpu-scaler.keda.svc:8080"
    variables = {"WEBHOOK_TOKEN": WORD, "WEBHOOK_PEERS": peers}
    ca_file = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(str(ca_file))
    webhook = load(**SOURCE, **variables, WEBHOOK_CA_FILE=str(ca_file)).webhook
    assert (webhook.peers, webhook.ca_file) == (tuple(peers.split(",")), ca_file)
    ca_file.write_text("no certificate")
    (mistake,) = refusal(**SOURCE, **variables, WEBHOOK_CA_FILE=str(ca_file))
    assert mistake == (
        f'- KEDA_GPU_SCALER_WEBHOOK_CA_FILE: "{ca_file}"; expected a PEM file with certificates'
    )


def test_the_token_in_a_file_is_the_one_of_this_moment(file: Path) -> None:
    webhook = WebhookSettings(token_file=file)
    file.write_text("another")
    assert webhook.secret() == "another"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "the webhook's token file cannot be read: No such file or directory"),
        (b"", "the webhook's token file does not hold one token of visible ASCII"),
        (b"two words", "the webhook's token file does not hold one token of visible ASCII"),
        (b"\xff" + WORD.encode(), "the webhook's token file does not hold one token"),
    ],
)
def test_a_file_that_holds_no_token_any_more_is_said_to(
    file: Path, content: bytes | None, words: str
) -> None:
    webhook = WebhookSettings(token_file=file)
    if content is None:
        file.unlink()
    else:
        file.write_bytes(content)
    with pytest.raises(errors.SettingsError, match=words) as caught:
        webhook.secret()
    assert WORD not in f"{caught.value} {caught.value.__cause__}"


def test_mistakes_are_named_and_no_token_is_shown(tmp_path: Path, file: Path) -> None:
    empty = tmp_path / "empty"
    empty.touch()
    mistakes = [
        *refusal(**SOURCE, WEBHOOK_TOKEN=f"{WORD} and more", WEBHOOK_LIFETIME="1s"),
        *refusal(**SOURCE, WEBHOOK_TOKEN=WORD, WEBHOOK_TOKEN_FILE=str(file)),
        *refusal(**SOURCE, WEBHOOK_PEERS="http://a:8080"),
        *refusal(**SOURCE, WEBHOOK_TOKEN_FILE=str(empty)),
        *refusal(**SOURCE, WEBHOOK_PEER="http://a:8080"),
    ]
    assert mistakes == [
        (
            "- KEDA_GPU_SCALER_WEBHOOK_TOKEN: a value that is not shown; "
            "expected a token of visible ASCII characters"
        ),
        '- KEDA_GPU_SCALER_WEBHOOK_LIFETIME: "1s"; expected a duration of at least 1m',
        f'- KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE: "{file}"; expected no token beside it',
        ('- KEDA_GPU_SCALER_WEBHOOK_PEERS: "http://a:8080"; expected token or token_file with it'),
        (
            f'- KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE: "{empty}"; '
            "expected a file that holds one token of visible ASCII"
        ),
        (
            "- KEDA_GPU_SCALER_WEBHOOK_PEER: unknown setting; "
            "did you mean KEDA_GPU_SCALER_WEBHOOK_PEERS?"
        ),
    ]
    assert WORD not in "".join(mistakes)


def test_the_token_is_masked_where_settings_are_printed() -> None:
    loaded = load(**SOURCE, WEBHOOK_TOKEN=WORD)
    assert WORD not in f"{loaded} {loaded.model_dump(mode='json')}"
