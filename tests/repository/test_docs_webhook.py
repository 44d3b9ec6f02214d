"""The scaler accepts the configuration that the page on alerts shows."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from keda_gpu_scaler import settings, trigger
from keda_gpu_scaler.alerts import LIMIT
from keda_gpu_scaler.alerts.notifications import OBJECT_LABELS, STATES, read_notification
from keda_gpu_scaler.alerts.replicas import EXCHANGE_SECONDS
from keda_gpu_scaler.alerts.store import LATE_SECONDS
from keda_gpu_scaler.spec import durations
from keda_gpu_scaler.spec.spec import ScaledObject
from keda_gpu_scaler.transport import authentication
from keda_gpu_scaler.transport.replicas import LOOKUP_SECONDS, REQUEST_SECONDS
from tests.repository.chart import charts
from tests.repository.test_docs import ROOT
from tests.support.alert_messages import alert, group
from tests.support.triggers import access

PAGE = (ROOT / "docs" / "webhook.md").read_text()
LIFETIME_SECONDS = settings.Settings.model_fields["webhook_lifetime_seconds"].default
BLOCKS: list[dict[str, Any]] = [
    yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
]


def block(key: str) -> dict[str, Any]:
    """Return the one piece of YAML with this key at its top."""
    (found,) = [each for each in BLOCKS if key in each]
    return found


def kind(name: str) -> dict[str, Any]:
    """Return the one piece of YAML that is an object of this kind."""
    (found,) = [each for each in BLOCKS if each.get("kind") == name]
    return found


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> list[charts.Object]:
    """What the chart makes of the values on the page."""
    values = tmp_path_factory.mktemp("values") / "values.yaml"
    values.write_text(yaml.safe_dump(block("webhook")))
    return charts.objects(charts.template("--values", str(values)))


def one_of(objects: list[charts.Object], name: str) -> charts.Object:
    """Return the one object of a kind."""
    (found,) = [each for each in objects if each["kind"] == name]
    return found


def container(objects: list[charts.Object]) -> dict[str, Any]:
    """Return the scaler's container."""
    (found,) = one_of(objects, "Deployment")["spec"]["template"]["spec"]["containers"]
    assert isinstance(found, dict)
    return found


@pytest.mark.needs("helm")
def test_the_settings_without_the_chart_are_those_that_the_chart_makes_of_its_values(
    installed: list[charts.Object],
) -> None:
    made = container(installed)
    assert [each for each in block("env")["env"] if each not in made["env"]] == []
    mounted = one_of(installed, "Deployment")["spec"]["template"]["spec"]["volumes"]
    (volume,) = block("env")["volumes"]
    (chosen,) = [each for each in mounted if each["name"] == volume["name"]]
    assert chosen["secret"]["secretName"] == volume["secret"]["secretName"]
    (mount,) = block("env")["volumeMounts"]
    assert mount in made["volumeMounts"]


def test_those_settings_are_accepted(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text("secret")
    given = {each["name"]: each["value"] for each in block("env")["env"]}
    given["KEDA_GPU_SCALER_WEBHOOK_TOKEN_FILE"] = str(token)
    loaded = settings.load(given | {"KEDA_GPU_SCALER_PROMETHEUS_URL": "http://a:9090"})
    assert loaded.webhook_peers == (given["KEDA_GPU_SCALER_WEBHOOK_PEERS"],)


@pytest.mark.needs("helm")
def test_the_replicas_are_let_to_each_other_as_by_the_chart(
    installed: list[charts.Object],
) -> None:
    shown, made = kind("NetworkPolicy"), one_of(installed, "NetworkPolicy")
    assert shown["spec"]["podSelector"] == made["spec"]["podSelector"]
    (rule,) = shown["spec"]["ingress"]
    assert rule in made["spec"]["ingress"]


@pytest.mark.needs("helm")
def test_every_service_on_the_page_is_one_of_the_chart(installed: list[charts.Object]) -> None:
    services = {each["metadata"]["name"]: each for each in installed if each["kind"] == "Service"}
    named = re.findall(r"(dns\+)?https?://([\w-]+)\.keda\.svc:(\d+)", PAGE)
    assert {name for _, name, _ in named} == {"keda-gpu-scaler", "keda-gpu-scaler-http"}
    for resolved, name, port in named:
        spec = services[name]["spec"]
        assert (spec.get("clusterIP") == "None") == bool(resolved)
        assert resolved or int(port) in {each["port"] for each in spec["ports"]}
    assert {each["containerPort"] for each in container(installed)["ports"]} == {6000, 8080}


def test_alertmanager_shows_the_token_of_the_secret_that_is_made() -> None:
    (command,) = re.findall(r"create secret generic (\S+) --from-literal=(\w+)=", PAGE)
    assert command[0] == block("webhook")["webhook"]["tokenSecret"]["name"]
    (receiver,) = [one for one in block("receivers")["receivers"] if "webhook_configs" in one]
    shown = receiver["webhook_configs"][0]["http_config"]["authorization"]["credentials_file"]
    assert shown.endswith("/".join(command))


def test_the_rule_names_its_object_and_is_routed_to_the_receiver() -> None:
    (rule,) = block("groups")["groups"][0]["rules"]
    labels = {"alertname": rule["alert"], **rule["labels"]}
    (notice,) = read_notification(group(alert(labels=labels)), None).updates
    assert notice.key.scaled_object == ScaledObject("inference", "bert")

    configured = block("receivers")
    (route,) = configured["route"]["routes"]
    ((name, value),) = re.findall(r'^(\w+)="(\w+)"$', route["matchers"][0])
    assert rule["labels"][name] == value
    (receiver,) = [one for one in configured["receivers"] if one["name"] == route["receiver"]]
    (webhook,) = receiver["webhook_configs"]
    assert webhook["url"].endswith(":8080/webhook")
    assert webhook["send_resolved"] is True


def test_the_route_repeats_itself_within_the_lifetime_of_an_alert() -> None:
    (route,) = block("receivers")["route"]["routes"]
    assert durations.parse(route["repeat_interval"]) < LIFETIME_SECONDS


def test_what_the_route_says_next_of_an_alert_is_not_taken_for_a_late_message() -> None:
    (route,) = block("receivers")["route"]["routes"]
    assert durations.parse(route["group_interval"]) > LATE_SECONDS


def test_the_scaled_object_is_the_one_of_the_rule_and_says_nothing_of_alerts() -> None:
    document = kind("ScaledObject")
    (one,) = document["spec"]["triggers"]
    assert one["type"] == "external-push"
    named = ScaledObject(document["metadata"]["namespace"], document["metadata"]["name"])
    assert trigger.parse(named, one["metadata"], access()).warnings == ()
    (rule,) = block("groups")["groups"][0]["rules"]
    assert named == (rule["labels"]["namespace"], rule["labels"]["scaled_object"])


def test_every_state_of_a_dashboard_is_on_the_page() -> None:
    table = PAGE.partition("| state |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", table)) == set(STATES)


def test_every_label_for_the_object_is_on_the_page() -> None:
    table = PAGE.partition("| label |")[2].partition("\n\n")[0]
    assert set(re.findall(r"`(\w+)`", table)) == {"namespace", *OBJECT_LABELS}


def test_the_numbers_on_the_page_are_those_of_the_code() -> None:
    round_seconds = LOOKUP_SECONDS + REQUEST_SECONDS
    assert f"within {_word(2 * round_seconds)} seconds" in PAGE
    assert f"ask each other every {EXCHANGE_SECONDS:g} seconds" in PAGE
    assert f"more than {_word(LATE_SECONDS)} seconds after" in PAGE
    assert f"knows {_word(LIMIT)} alerts at most" in " ".join(PAGE.split())
    assert f"takes longer than {authentication.BODY_SECONDS:g} s, is larger than 1 MiB" in PAGE
    assert authentication.BODY_BYTES == 2**20
    assert f"The default of {_word(LIFETIME_SECONDS / 3600)} hours" in PAGE


def _word(number: float) -> str:
    return {5: "five", 6: "six", 10: "ten", 10_000: "ten thousand"}[int(number)]
