"""The settings of the webhook."""

from pathlib import Path

import pytest

from tests.settings.test_loading import WORD, load, refusal

SOURCE = {"PROMETHEUS_URL": "http://prometheus:9090"}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    written = tmp_path / "token"
    written.write_text(f"{WORD}\n")
    return written


def test_every_setting_can_come_from_the_environment() -> None:
    peers = "https://10.0.0.1:8080,dns+https://keda-gpu-scaler.keda.svc:8080"
    variables = {"WEBHOOK_TOKEN": WORD, "WEBHOOK_LIFETIME": "10m", "WEBHOOK_PEERS": peers}
    loaded = load(**SOURCE, **variables)
    assert loaded.webhook_secret is not None
    assert loaded.webhook_secret() == WORD
    assert loaded.webhook_lifetime_seconds == 600
    assert loaded.webhook_peers == tuple(peers.split(","))


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
        f'- KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE: "{file}"; expected no webhook_token beside it',
        (
            '- KEDA_GPU_SCALER_WEBHOOK_PEERS: "http://a:8080"; '
            "expected webhook_token or webhook_token_file with it"
        ),
        (
            f'- KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE: "{empty}"; '
            "expected a file with a token, but it does not hold one token of visible ASCII"
        ),
        (
            "- KEDA_GPU_SCALER_WEBHOOK_PEER: unknown setting; "
            "did you mean KEDA_GPU_SCALER_WEBHOOK_PEERS?"
        ),
    ]
    assert WORD not in "".join(mistakes)
