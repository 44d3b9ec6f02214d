"""`keda-gpu-scaler serve`: its settings, checked and printed without a port, tried as options."""

import socket
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner, Result

from keda_gpu_scaler import cli, settings
from keda_gpu_scaler.cli.serve import in_effect
from tests.support.serving import environment

PREFIX = "KEDA_GPU_SCALER_"
SECRETS = {
    "HTTP_TOKEN": "hunter2-http",
    "WEBHOOK_TOKEN": "hunter2-webhook",
    "PROMETHEUS_URL": "http://prometheus:9090",
    "PROMETHEUS_PASSWORD": "hunter2-password",
    "PROMETHEUS_USERNAME": "scaler",
    "PROMETHEUS_HEADERS": "X-Scope-OrgID=hunter2-header",
}
ONLY_PROMETHEUS = {"SCRAPE_TARGETS": ""}


def served(*flags: str, **given: str) -> Result:
    return CliRunner().invoke(cli.app, ["serve", *flags], env=environment(**given))


def test_right_settings_are_said_to_be_so_and_no_port_opens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as holder:
        taken = f"127.0.0.1:{holder.getsockname()[1]}"
        result = served("--check-config", GRPC_ADDRESS=taken, HTTP_ADDRESS=taken)
    assert (result.exit_code, result.output) == (0, "the settings are valid; sources: default\n")


@pytest.mark.parametrize("flag", ["--check-config", "--print-config"])
def test_wrong_settings_end_a_check_with_2_and_are_named_one_a_line(flag: str) -> None:
    result = served(flag, SCRAPE_INTERVAL="5", GRPC_ADDRES=":6000")
    assert (result.exit_code, result.stdout) == (2, "")
    heading, first, second = result.stderr.splitlines()
    assert heading == "keda-gpu-scaler: 2 mistakes in the process settings:"
    assert first.startswith(f"- {PREFIX}GRPC_ADDRES:")
    assert second.startswith(f"- {PREFIX}SCRAPE_INTERVAL:")


def test_the_settings_in_effect_are_printed_without_secrets() -> None:
    result = served("--print-config", **ONLY_PROMETHEUS, **SECRETS, WEBHOOK_LIFETIME="90m")
    assert result.exit_code == 0
    assert "hunter2" not in result.output
    found = yaml.safe_load(result.stdout)
    assert (found["webhook_lifetime"], found["connection_max_age"]) == ("1h30m", "10m")
    assert {found[f"{name}_token"] for name in ("http", "webhook")} == {"**********"}
    source = found["sources"]["default"]
    assert (source["type"], source["step"], source["max_response_bytes"]) == (
        "prometheus",
        "15s",
        32 * 2**20,
    )


def test_settings_that_are_printed_mean_the_same_as_a_file(tmp_path: Path) -> None:
    given = {
        "PROMETHEUS_URL": "http://prometheus:9090",
        "PROMETHEUS_MATCHERS": 'a=~"b|c",d!="e\\\\"',
        "PROMETHEUS_STEP": "90s",
        "PROMETHEUS_NAMESPACES": "team-a",
        "WEBHOOK_LIFETIME": "100s",
        "LOG_LEVEL": "debug",
        "MAX_CONCURRENT_RPCS": "99",
        "OTHER_NAMESPACES": "team-a,team-b",
        "CLAIMS_WITHOUT_GPUS": "nic,rdma.example.com",
        "RESOURCES_WITHOUT_GPUS": "example.com/,example.org/nic",
    }
    chosen = settings.load({f"{PREFIX}{name}": text for name, text in given.items()})
    file = tmp_path / "config.yaml"
    file.write_text(in_effect(chosen))
    again = settings.load({f"{PREFIX}CONFIG": str(file)})
    assert again.model_dump(exclude={"config"}) == chosen.model_dump(exclude={"config"})


def test_a_printed_secret_is_refused_as_a_secret(tmp_path: Path) -> None:
    file = tmp_path / "config.yaml"
    file.write_text(served("--print-config", **ONLY_PROMETHEUS, **SECRETS).stdout)
    result = served("--check-config", CONFIG=str(file), **ONLY_PROMETHEUS)
    assert result.exit_code != 0
    refused = [line for line in result.stderr.splitlines() if "--print-config shows" in line]
    assert [line.partition(" in ")[0] for line in refused] == [
        "- http_token",
        "- webhook_token",
        "- sources.default.password",
        "- sources.default.headers",
    ]
    assert all(line.endswith("write the secret, or leave the setting out") for line in refused)
    assert "**" not in result.stderr
